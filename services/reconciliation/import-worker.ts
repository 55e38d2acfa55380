/** Imports that start without a person: each file that waits, a few at a time in each process. */
import type { Bus } from "../bus/connection.ts";
import { readFile } from "../bus/statement-files.ts";
import { type Repeated, repeat } from "../runtime/repeat.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { statementFormat } from "./formats/registry.ts";
import { importNext } from "./import-work.ts";
import { IMPORT_LIMITS } from "./limits.ts";
import { shortOfSpace } from "./space.ts";

interface WorkerDeps extends Pick<ReconciliationDeps, "database" | "longDatabase" | "log"> {
  readonly bus: Pick<Bus, "nc">;
  readonly stopping: AbortSignal;
}

/** Until stopped. */
export function startImports({ database, longDatabase, log, bus, stopping }: WorkerDeps): Repeated[] {
  const openFile = (name: string): AsyncIterable<Uint8Array> => readFile(bus, name);
  const isShortOfSpace = shortOfSpace(bus);
  const deps = { database, longDatabase, openFile, formatNamed: statementFormat, stopping, isShortOfSpace };
  return Array.from({ length: IMPORT_LIMITS.importsAtOnce }, () =>
    repeat({ everyMs: IMPORT_LIMITS.waitingIntervalMs, what: "importing statements", log }, async (signal) => {
      while (!signal.aborted && !stopping.aborted && (await importNext(deps))) {
        // Until no file waits.
      }
    }),
  );
}
