/** Pages of an owner's events, which all services of the audit log read alike. */
import type { Fragment, Queryable } from "./pool.ts";

/** Where a page begins: behind `sinceId`, before `beforeId`, or both; ids of events. */
export interface EventPage {
  readonly sinceId: number | undefined;
  readonly beforeId: number | undefined;
  /** Only entries that contain it. */
  readonly search: string | undefined;
  readonly limit: number;
}

/** What a page is read from. */
interface EventLog<TRow> {
  readonly table: Fragment;
  /** Whose entries. */
  readonly where: Fragment;
  /** Selects the columns from `rows`, which is all of the statement that follows them. */
  readonly select: (rows: Fragment) => Promise<TRow[]>;
}

/**
 * How many entries one page goes through for those that contain a text: about a quarter of a second. A rare text in a long
 * log is then found by several requests, and none of them comes near the time limit of a statement.
 */
export const SEARCHED_ENTRIES = 50_000;

const patternOf = (text: string): string => `%${text.replaceAll("_", " ").replaceAll(/[\\%]/g, String.raw`\$&`)}%`;

/**
 * Whether an entry contains what a person searches for. They read `device_suspended` as "device suspended", so an underscore
 * is a space. Entries are read one by one until the page is full.
 */
function containing(sql: Queryable, search: string) {
  // Data is searched as JSON, which writes quotes and backslashes in its own way.
  const inData = patternOf(JSON.stringify(search).slice(1, -1));
  return sql`
    (replace(concat_ws(' ', actor_name, action, subject_kind, subject_id), '_', ' ') ilike ${patternOf(search)}
      or replace(data::text, '_', ' ') ilike ${inData})`;
}

/**
 * Up to `limit` entries and one more, which shows that there are more: oldest first with `sinceId`, else newest first.
 * `searchedThroughId` is the last entry that the search went through when there may be others behind it.
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
