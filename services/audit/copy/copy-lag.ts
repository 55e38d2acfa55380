/** How far the audit copy is behind the station log, whoever makes it: read from the database and the stream. */
import { STATION_LOG } from "../../bus/streams.ts";
import { STATION_LOG_ALL } from "../../bus/subjects.ts";
import type { AuditDeps } from "../deps.ts";
import { readPosition } from "../sql/position.ts";

export interface CopyLag {
  /** The stream sequence up to which everything is copied. */
  readonly position: number;
  /** Sequences of the stream behind that. */
  readonly behind: number;
  /** For how long the oldest commit that is not copied has waited; zero when there is none. */
  readonly lateMs: number;
}

export async function readCopyLag({ bus, database }: Pick<AuditDeps, "bus" | "database">): Promise<CopyLag> {
  const { name } = STATION_LOG;
  const position = await readPosition(database, name);
  const newest = await bus.jsm.streams.getMessage(name, { last_by_subj: STATION_LOG_ALL });
  const behind = Math.max(0, (newest?.seq ?? 0) - position);
  if (behind === 0) return { position, behind, lateMs: 0 };
  // The stream keeps so many commits of a station, so the very next sequence may be gone.
  const oldest = await bus.jsm.direct.getMessage(name, { seq: position + 1, next_by_subj: STATION_LOG_ALL });
  return { position, behind, lateMs: oldest === null ? 0 : Math.max(0, bus.clock.nowMs() - oldest.time.getTime()) };
}
