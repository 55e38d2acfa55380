/**
 * The retention job: deletes rows that are past their retention. Each statement has a limit, so that it does not hold
 * its locks for long.
 */
import type { LineLog } from "./log.ts";
import { type Repeated, repeat } from "./repeat.ts";

/** Deletes up to `rows` rows and returns how many it has deleted. */
type Removal = (rows: number) => Promise<number>;

/** The rows that a service deletes. */
export interface Retention<TName extends string = string> {
  /** The name of the rows in the log: "old serving tasks". */
  readonly what: string;
  readonly everyMs: number;
  /** The limit of one statement. */
  readonly rowsPerBatch: number;
  /** The job runs them one after another, in this order. */
  readonly removals: Readonly<Record<TName, Removal>>;
}

/** The first turn: by then the process has read what people wait for. */
const FIRST_MS = 5_000;

/**
 * Runs the job within five to ten seconds, so that processes that started together do not run it together, and then at each
 * interval, until stopped. It logs a failure and tries again at the next turn.
 */
export function startRetention(retention: Retention, log: LineLog): Repeated {
  const { what, everyMs } = retention;
  const firstMs = Math.min(everyMs, FIRST_MS * (1 + Math.random()));
  return repeat({ everyMs, firstMs, what: `removing ${what}`, log }, (signal) => removeExpired(retention, log, signal));
}

/**
 * One turn: deletes all rows that are past their retention now. Returns and logs how many rows each removal has
 * deleted.
 */
export async function removeExpired<TName extends string>(
  { what, rowsPerBatch, removals }: Retention<TName>,
  log: Pick<LineLog, "info">,
  signal?: AbortSignal,
): Promise<Record<TName, number>> {
  const removed: Partial<Record<TName, number>> = {};
  for (const [name, remove] of Object.entries(removals) as [TName, Removal][]) {
    removed[name] = await removeAll(remove, rowsPerBatch, signal);
  }
  if (Object.values(removed).some((rows) => rows !== 0)) log.info(removed, `removed ${what}`);
  return removed as Record<TName, number>;
}

async function removeAll(remove: Removal, rowsPerBatch: number, signal: AbortSignal | undefined): Promise<number> {
  const isStopped = (): boolean => signal?.aborted === true;
  let total = 0;
  while (!isStopped()) {
    const removed = await remove(rowsPerBatch);
    total += removed;
    if (removed < rowsPerBatch) break;
  }
  return total;
}
