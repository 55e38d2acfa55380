/** The waits and bounds of the replicas, each with its reason. */
export const FEED_LIMITS = {
  /** Silence of a feed after which its replica answers nothing (design §2.2). */
  silenceMs: 1_500,
  /** The idle heartbeat asked of the server: five may be missed before the replica is stale. */
  heartbeatMs: 250,
  /** Silence after which the feed is asked for anew: well before the replica is stale, so that a lost consumer goes unseen. */
  resumeMs: 900,
  /** How often a feed looks at its own silence. */
  watchMs: 100,
  /** Pause before a feed that could not be followed is tried again. */
  retryMs: 200,
  /** After an absence this long the stream is read from its beginning: markers of deletions may be gone. */
  reloadMs: 60_000,
  /** The server forgets the consumer of a gateway that died. */
  forgottenMs: 30_000,
} as const;
