/** How far the audit copy of each log is behind it, whichever process makes it: read from the database and the streams. */
import { NoCopyAnswersError, readNext } from "../../bus/direct-reader.ts";
import type { AuditDeps, AuditedLog } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import { readPosition } from "../sql/position.ts";

export interface CopyLag {
  readonly log: string;
  /** The sequence of the log's stream up to which everything is copied. */
  readonly position: number;
  /** Messages of the stream behind that. */
  readonly behind: number;
  /** For how long the oldest commit that is not copied has waited; zero when there is none. */
  readonly lateMs: number;
}

/** Throws where the database or every copy of a log is silent. */
export async function readCopyLags(deps: Pick<AuditDeps, "bus" | "database" | "logs">): Promise<readonly CopyLag[]> {
  return await Promise.all(deps.logs.all.map((log) => readCopyLag(deps, log)));
}

async function readCopyLag({ bus, database }: Pick<AuditDeps, "bus" | "database">, log: AuditedLog): Promise<CopyLag> {
  const { name: stream, commits: subjects } = log;
  const position = await readPosition(database, stream);
  const read = { stream, from: position + 1, timeoutMs: AUDIT_LIMITS.readMs };
  const oldest = await readNext(bus, { ...read, subjects });
  if (oldest === null) return { log: stream, position, behind: 0, lateMs: 0 };
  const lateMs = Math.max(0, bus.clock.nowMs() - oldest.storedAtMs);
  return { log: stream, position, behind: await countFrom(bus, stream, oldest.sequence), lateMs };
}

/** The server counts them: a batch of one says how many more there are. */
async function countFrom({ nc }: AuditDeps["bus"], stream: string, from: number): Promise<number> {
  const query = JSON.stringify({ seq: from, batch: 1 });
  const timeout = AUDIT_LIMITS.readMs;
  const message = await nc.request(`$JS.API.DIRECT.GET.${stream}`, query, { timeout }).catch((cause: unknown) => {
    throw new NoCopyAnswersError(stream, { cause });
  });
  return 1 + Number(message.headers?.get("Nats-Num-Pending") ?? 0);
}
