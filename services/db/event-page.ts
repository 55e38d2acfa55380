/** Reads pages of audit logs, for all services that have one. */
import type { Fragment, Queryable } from "./pool.ts";

/** Which events a page has: after the id `sinceId`, before the id `beforeId`, or both. */
export interface EventPage {
  readonly sinceId: number | undefined;
  readonly beforeId: number | undefined;
  /** Only entries that contain this text. */
  readonly search: string | undefined;
  readonly limit: number;
}

/** The table of an audit log, and how to read it. */
interface EventLog<TRow> {
  readonly table: Fragment;
  /** Selects the entries of the owner. */
  readonly where: Fragment;
  /** Selects the columns; `rows` is the rest of the statement after them. */
  readonly select: (rows: Fragment) => Promise<TRow[]>;
}

/**
 * How many entries a search checks for one page: this takes about a quarter of a second. So a search for a rare text in
 * a long log needs several requests, but none of them comes near the time limit of a statement.
 */
export const SEARCHED_ENTRIES = 50_000;

const patternOf = (text: string): string => `%${text.replaceAll("_", " ").replaceAll(/[\\%]/g, String.raw`\$&`)}%`;

/**
 * Whether an entry contains the searched text. Pages show `device_suspended` as "device suspended", so an underscore
 * counts as a space.
 */
function containing(sql: Queryable, search: string) {
  // The search in `data` uses its JSON text, in which quotes and backslashes are escaped.
  const inData = patternOf(JSON.stringify(search).slice(1, -1));
  return sql`
    (replace(concat_ws(' ', actor_name, action, subject_kind, subject_id), '_', ' ') ilike ${patternOf(search)}
      or replace(data::text, '_', ' ') ilike ${inData})`;
}

/**
 * Up to `limit` entries, and one more, which shows that there are more: oldest first with `sinceId`, else newest first.
 * `searchedThroughId` is the last entry that the search has checked; undefined when it has checked all.
 */
export async function readEvents<TRow>(
  sql: Queryable,
  { table, where, select }: EventLog<TRow>,
  { sinceId, beforeId, search, limit }: EventPage,
): Promise<{ readonly rows: TRow[]; readonly searchedThroughId: number | undefined }> {
  const after = sinceId === undefined ? sql`` : sql`and event_id > ${sinceId}`;
  const before = beforeId === undefined ? sql`` : sql`and event_id < ${beforeId}`;
  const asked = sql`from ${table} where ${where} ${after} ${before}`;
  const inOrder = sinceId === undefined ? sql`order by event_id desc` : sql`order by event_id`;
  const read = (condition: Fragment) => select(sql`${asked} ${condition} ${inOrder} limit ${limit + 1}`);
  if (search === undefined) return { rows: await read(sql``), searchedThroughId: undefined };
  const [last] = await sql<{ event_id: number }[]>`
    select event_id ${asked} ${inOrder} offset ${SEARCHED_ENTRIES - 1} limit 1`;
  const searchedThroughId = last?.event_id;
  const isSearched =
    searchedThroughId === undefined
      ? sql``
      : sinceId === undefined
        ? sql`and event_id >= ${searchedThroughId}`
        : sql`and event_id <= ${searchedThroughId}`;
  return { rows: await read(sql`${isSearched} and ${containing(sql, search)}`), searchedThroughId };
}
