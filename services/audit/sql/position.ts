/** The copier's position in the stream and its hold on the copying. */
import type { Database, Transaction } from "../../db/pool.ts";

/**
 * Takes or renews the hold and returns the sequence up to which everything is copied; undefined while somebody else
 * holds it. The database's clock decides.
 */
export async function holdPosition(
  database: Database,
  key: { readonly stream: string; readonly holder: string; readonly holdMs: number },
): Promise<number | undefined> {
  const [row] = await database<{ sequence: number }[]>`
    insert into audit_position as known (stream, holder, held_until)
    values (${key.stream}, ${key.holder}, clock_timestamp() + make_interval(secs => ${key.holdMs / 1000}))
    on conflict (stream) do update set holder = excluded.holder, held_until = excluded.held_until
    where known.holder = excluded.holder or known.held_until < clock_timestamp()
    returning sequence`;
  return row?.sequence;
}

/** Gives the hold up, so that another copier need not wait for it to lapse. */
export async function releasePosition(
  database: Database,
  key: { readonly stream: string; readonly holder: string },
): Promise<void> {
  await database`
    update audit_position set held_until = '-infinity' where stream = ${key.stream} and holder = ${key.holder}`;
}

/** Moves the position and renews the hold. False when this copier no longer holds it, or stands elsewhere. */
export async function movePosition(
  sql: Transaction | Database,
  move: {
    readonly stream: string;
    readonly holder: string;
    readonly holdMs: number;
    readonly from: number;
    readonly to: number;
  },
): Promise<boolean> {
  const moved = await sql`
    update audit_position
    set sequence = ${move.to}, held_until = clock_timestamp() + make_interval(secs => ${move.holdMs / 1000})
    where stream = ${move.stream} and holder = ${move.holder} and sequence = ${move.from}`;
  return moved.count === 1;
}

/** The sequence up to which everything is copied. */
export async function readPosition(database: Database, stream: string): Promise<number> {
  const [row] = await database<{ sequence: number }[]>`
    select sequence from audit_position where stream = ${stream}`;
  return row?.sequence ?? 0;
}
