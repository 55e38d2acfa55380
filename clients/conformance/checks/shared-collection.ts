/** The smart POS collection that the checks of one run share, and what the service answered about it. */
import { perRun } from "../check.ts";
import type { Collection } from "../world.ts";

export interface SharedCollection {
  collection: Collection;
  /** The one that `slip` and `key` were reported of, once it is settled. */
  settled: Collection;
  slip: string;
  key: string;
  etag: string;
  assignment: Record<string, unknown>;
  reported: Record<string, unknown>;
}

export const sharedIn = perRun(() => ({}) as SharedCollection);

/** The smart POS collection that lapses in the silence: it is fetched, and nothing else happens to it. */
export const lapsingIn = perRun(() => ({ collection: {} as Collection }));
