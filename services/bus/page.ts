/**
 * Pages of a list that may be longer than one bus message. Every list is read by the ids of its things: oldest first
 * after `sinceId`, or newest first before `beforeId`; `hasMore` says whether there is a further page.
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";

const size = z.int().min(1).max(BOUNDS.listed).optional();
const cursor = z.int().min(0).optional();

/** Of a list that is read oldest first; without them, its first page. */
export const pageAfter = { sinceId: cursor, limit: size };
/** Of a list that is read newest first; without them, its newest page. */
export const pageBefore = { beforeId: cursor, limit: size };

/**
 * The first of the found rows: at most `limit`, at most as many as one message can carry, and at least one. A caller reads
 * `limit + 1` rows, so that the extra row shows that there are more.
 */
export function firstPage<T>(found: readonly T[], limit: number): { readonly page: T[]; readonly hasMore: boolean } {
  let bytes = 0;
  const page: T[] = [];
  for (const thing of found.slice(0, limit)) {
    bytes += Buffer.byteLength(JSON.stringify(thing));
    if (page.length > 0 && bytes > BOUNDS.listedBytes) break;
    page.push(thing);
  }
  return { page, hasMore: page.length < found.length };
}

/**
 * A page of an audit log, from `limit + 1` entries. `throughId` is the entry behind which the next page begins, null when
 * there is none: the last of the page or, where a search ended before, the last entry that it went through.
 */
export function eventsOfPage<T extends { readonly eventId: number }>(
  found: readonly T[],
  limit: number,
  searchedThroughId: number | undefined,
): { readonly events: T[]; readonly throughId: number | null } {
  const { page: events, hasMore } = firstPage(found, limit);
  return { events, throughId: (hasMore ? events.at(-1)?.eventId : searchedThroughId) ?? null };
}

/** The first reading of `readPage`: more than a page carries of the longest things, and all of it in most lists. */
const FIRST_READING = 20;
/** How many times as many things as are found already the next reading asks for: a list's first things may be its shortest. */
const READING_GROWTH = 4;

/**
 * A page of things that may be long: as many as were asked for and as one message can carry, one at least. `read` returns
 * up to `count` things that follow `last`. It is called again while there is room. To read a whole page of the longest things
 * at once would be to read hundreds of times what it carries, and would keep all other requests waiting.
 */
export async function readPage<T>(
  limit: number,
  read: (last: T | undefined, count: number) => Promise<readonly T[]>,
): Promise<{ readonly page: T[]; readonly hasMore: boolean }> {
  const page: T[] = [];
  let bytes = 0;
  for (;;) {
    // One thing more than the page holds shows that there are more.
    const count = Math.min(limit + 1 - page.length, page.length * READING_GROWTH || FIRST_READING);
    const things = await read(page.at(-1), count);
    for (const thing of things) {
      bytes += Buffer.byteLength(JSON.stringify(thing));
      if (page.length === limit || (page.length > 0 && bytes > BOUNDS.listedBytes)) return { page, hasMore: true };
      page.push(thing);
    }
    if (things.length < count) return { page, hasMore: false };
  }
}
