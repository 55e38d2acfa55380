/** The smart POS collection that the checks of one run share, and what the service answered about it. */
import { perRun } from "../check.ts";
import type { Collection } from "../world.ts";

export interface SharedCollection {
  collection: Collection;
  /** The settled collection whose report has `slip` and `key`. */
  settled: Collection;
  slip: string;
  key: string;
  etag: string;
  assignment: Record<string, unknown>;
  reported: Record<string, unknown>;
}

export const sharedIn = perRun(() => ({}) as SharedCollection);

/** The smart POS collection that lapses during the silence: the companion fetches it and does nothing else. */
export const lapsingIn = perRun(() => ({ collection: {} as Collection }));
