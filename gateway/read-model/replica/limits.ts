/** The waits of the replicas, each with its reason; those of the feeds beneath are in `services/bus/limits.ts`. */
export const FEED_LIMITS = {
  /** A replica that is not known to be complete up to this long ago answers nothing (design §2.2). */
  silenceMs: 1_500,
  /** How often a replica looks at its feed: often enough that a silence is noticed when it happens and not afterwards. */
  lookMs: 100,
} as const;
