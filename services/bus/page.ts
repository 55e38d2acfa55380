/**
 * Pages of a list that may be longer than one bus message. Every list is ordered by id: oldest first after `sinceId`,
 * or newest first before `beforeId`. `hasMore` shows whether there is a further page.
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";

/** The most items of one page. */
export const pageLimit = z.int().min(1).max(BOUNDS.listed).default(BOUNDS.listedUnlessAsked);
const cursor = z.int().min(0);

/** Request fields of a list that is read oldest first. Without them: the first page. */
export const pageAfter = { sinceId: cursor.default(0), limit: pageLimit };
/** Request fields of a list that is read newest first. Without them: the newest page. */
export const pageBefore = { beforeId: cursor.optional(), limit: pageLimit };
/** Request fields of an audit log: oldest first after `sinceId`; without it newest first. */
export const pageOfAuditLog = { sinceId: cursor.optional(), ...pageBefore };

/**
 * The first of the found rows: at most `limit`, at most as many as one message can carry, and at least one. A caller reads
 * `limit + 1` rows, so that the extra row shows that there are more.
 */
export function firstPage<T>(found: readonly T[], limit: number): { readonly page: T[]; readonly hasMore: boolean } {
  let bytes = 0;
  const page: T[] = [];
  for (const item of found.slice(0, limit)) {
    bytes += Buffer.byteLength(JSON.stringify(item));
    if (page.length > 0 && bytes > BOUNDS.listedBytes) break;
    page.push(item);
  }
  return { page, hasMore: page.length < found.length };
}

/**
 * The same for an async iterable. It reads the items of the page and one more item, which shows that there are more.
 */
export async function takePage<T>(
  items: AsyncIterable<T>,
  limit: number,
): Promise<{ readonly page: T[]; readonly hasMore: boolean }> {
  let bytes = 0;
  const page: T[] = [];
  for await (const item of items) {
    bytes += Buffer.byteLength(JSON.stringify(item));
    if (page.length === limit || (page.length > 0 && bytes > BOUNDS.listedBytes)) return { page, hasMore: true };
    page.push(item);
  }
  return { page, hasMore: false };
}

/**
 * A page of an audit log, from `limit + 1` entries. The next page begins after the entry `throughId`; null when there is no
 * next page. It is the last entry of the page or, when a search stopped early, the last entry that the search has read.
 */
export function eventsOfPage<T extends { readonly eventId: number }>(
  found: readonly T[],
  limit: number,
  searchedThroughId: number | undefined,
): { readonly events: T[]; readonly throughId: number | null } {
  const { page: events, hasMore } = firstPage(found, limit);
  return { events, throughId: (hasMore ? events.at(-1)?.eventId : searchedThroughId) ?? null };
}

/**
 * The items of `readPage`'s first read: the whole page of most lists, and of the longest items more than one message
 * can carry.
 */
const FIRST_READING = 20;
/** Each further read asks for this many times the items found so far. A list's first items may be its shortest. */
const READING_GROWTH = 4;

/**
 * A page of items that may be long: at most `limit`, at most as many as one message can carry, and at least one. `read`
 * returns up to `count` items that follow `last`. It is called again while there is room. One read of `limit` items could
 * return hundreds of times what a message carries, and all other requests would wait for it.
 */
export async function readPage<T>(
  limit: number,
  read: (last: T | undefined, count: number) => Promise<readonly T[]>,
): Promise<{ readonly page: T[]; readonly hasMore: boolean }> {
  async function* items(): AsyncGenerator<T> {
    let last: T | undefined;
    for (let found = 0; ; ) {
      // One extra item shows that there are more.
      const count = Math.min(limit + 1 - found, found * READING_GROWTH || FIRST_READING);
      const next = await read(last, count);
      yield* next;
      if (next.length < count) return;
      found += next.length;
      last = next.at(-1);
    }
  }
  return await takePage(items(), limit);
}
