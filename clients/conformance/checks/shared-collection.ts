/** The smart POS collection that the checks of one run share, and what the service answered about it. */
import { perRun } from "../check.ts";
import type { Collection } from "../world.ts";

export interface SharedCollection {
  collection: Collection;
  slip: string;
  key: string;
  etag: string;
  assignment: Record<string, unknown>;
  reported: Record<string, unknown>;
}

export const sharedIn = perRun(() => ({}) as SharedCollection);
