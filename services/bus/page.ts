/**
 * Pages of a list that may be longer than one bus message. Every list is read by the ids of its things: oldest first
 * after `sinceId`, or newest first before `beforeId`; `hasMore` tells whether there is a further page.
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
 * As many of the things found as were asked for and as one message can carry, one at least. Whoever reads them asks for
 * `limit + 1`, so that one too many tells that there are more.
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
