/** A rolling upgrade: the steps of the operators' guide ("Upgrade"), each as a fault whose outage is measured. */
import { join } from "node:path";
import { type ClusterWorld, KINDS, type Kind, type ProcessName } from "./cluster-world.ts";
import { type Draw, type Fault, qrsOfStop, withinOfStop } from "./faults.ts";

const LAST: readonly Kind[] = ["stations", "gateway", "sandbox-provider"];
const NEWER = join(import.meta.dirname, "..", "..");
/** Services, then actor hosts, then gateways, and last the sandbox provider, as the operators' guide has it. */
const ORDER: readonly Kind[] = [...KINDS.filter((kind) => !LAST.includes(kind)), ...LAST];
const COPIES = [0, 1] as const;

/** A migration stops no process, so clients do not notice it. */
const MIGRATE_MS = 1_000;

/** The migration, the replacement of one process after another, and then one process of each kind back and forth. */
export function upgradeSteps(older: { readonly path: string }): readonly Draw[] {
  const up = ORDER.flatMap((kind) => COPIES.map((copy) => replace(kind, copy, NEWER, "newer")));
  const back = ORDER.toReversed().map((kind) => replace(kind, 0, older.path, "older"));
  const again = ORDER.map((kind) => replace(kind, 0, NEWER, "newer"));
  return [migrate, ...up, ...back, ...again];
}

const migrate: Draw = async (world) => ({
  name: "migrate",
  target: "database and streams",
  withinMs: MIGRATE_MS,
  run: () => world.migrate(),
});

function replace(kind: Kind, copy: 0 | 1, checkout: string, which: string): Draw {
  return async (world: ClusterWorld): Promise<Fault> => {
    const name: ProcessName = `${kind}-${copy}`;
    const target = world.processes.get(name);
    if (target === undefined) throw new Error(`There is no process ${name}.`);
    return {
      name: `replace a process of ${kind} by the ${which} one`,
      target: name,
      withinMs: withinOfStop(kind),
      qrs: qrsOfStop(kind),
      async run() {
        await target.stop();
        await target.restart(checkout);
      },
    };
  };
}
