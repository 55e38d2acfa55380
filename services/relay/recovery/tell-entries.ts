/** Puts back what the buckets have lost, and takes out what has come back although it was deleted. */
import { announceCredentials, announceSessions } from "../../bus/messages/announce.ts";
import { call } from "../../bus/operation.ts";
import { type BucketDefinition, CREDENTIALS, SESSIONS } from "../../bus/streams.ts";
import { deleteEntry, hasEntry, putFirst } from "../buckets.ts";
import { RELAY_LIMITS } from "../limits.ts";
import { atOnce } from "./at-once.ts";
import type { TellDeps, Told } from "./tell.ts";

interface Page {
  readonly entries: readonly { readonly id: number; readonly hash: string; readonly entry: object | null }[];
  readonly hasMore: boolean;
}

export async function tellCredentials(deps: TellDeps, sinceId: number): Promise<Told> {
  const limit = RELAY_LIMITS.announcedEntries;
  return await tellEntries(deps, CREDENTIALS, sinceId, await call(deps.nc, announceCredentials, { sinceId, limit }));
}

export async function tellSessions(deps: TellDeps, sinceId: number): Promise<Told> {
  const limit = RELAY_LIMITS.announcedEntries;
  return await tellEntries(deps, SESSIONS, sinceId, await call(deps.nc, announceSessions, { sinceId, limit }));
}

async function tellEntries(deps: TellDeps, bucket: BucketDefinition, sinceId: number, page: Page): Promise<Told> {
  let news = 0;
  await atOnce(page.entries, RELAY_LIMITS.announcedAtOnce, async ({ hash, entry }) => {
    deps.requireLease();
    if (await tellEntry(deps, bucket, hash, entry)) news += 1;
  });
  return { through: page.entries.at(-1)?.id ?? sinceId, hasMore: page.hasMore, news };
}

/** Whether it was news. A deletion stands, also one that came after the page was read. */
async function tellEntry(
  deps: TellDeps,
  bucket: BucketDefinition,
  hash: string,
  entry: object | null,
): Promise<boolean> {
  if (entry !== null) return (await putFirst(deps, bucket, hash, entry)) !== undefined;
  if (!(await hasEntry(deps, bucket, hash))) return false;
  await deleteEntry(deps, bucket, hash);
  return true;
}
