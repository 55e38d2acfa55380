/** Every wait, size and count of the kit, with its reason. Times are in milliseconds. The device guide (`docs/devices.md`) names most of them. */
export const KIT_LIMITS = {
  /** The service allows a credential one request a second, and this many at once (contract, "Limits" 1). */
  requestGapMs: 1_000,
  burst: 10,
  /** Polls and heartbeats leave this many requests for a report. */
  burstKept: 1,
  /** The service may take 12 seconds; after this time the outcome is unknown. */
  requestTimeoutMs: 10_000,
  /** Answers are a few hundred bytes; a larger one does not come from this service. */
  answerMaxChars: 64 * 1_024,
  /** Two heartbeats may be lost before the device counts as offline. */
  heartbeatEveryMs: 10_000,
  /** A started device does nothing before its first heartbeat is accepted, so it repeats this heartbeat as often as a poll. */
  firstHeartbeatMs: 2_000,
  /** As in the device guide. A companion polls only between collections. A display waits no longer after a failed poll. */
  pollEveryMs: 2_000,
  /** A blocked device tries again after this time. */
  blockedMs: 10_000,
  /** A new credential mostly becomes effective within seconds. */
  notEffectiveMs: 5_000,
  /** The first wait after a failure; it doubles each time. */
  backoffFirstMs: 1_000,
  /** The longest wait, so that a device reconnects within half a minute after the service returns. */
  backoffMaxMs: 30_000,
  /** The longest Retry-After that the kit accepts. */
  retryAfterMaxMs: 300_000,
  /** The service grants a collection half an hour at most, so the kit does not accept a later deadline. */
  collectionMaxMs: 31 * 60_000,
  /** How long after the deadline the payment application may still return the outcome. */
  graceMs: 3_000,
  /** How long the payment application may take to return the outcome of an earlier payment. */
  statusMs: 10_000,
  /** A write of some hundred bytes that takes longer counts as failed. */
  storageMs: 10_000,
  /** The longest reference or code of a payment application, so that no report is longer than the service reads. */
  textMaxChars: 1_000,
  /** The service refuses a heartbeat whose telemetry is larger, as JSON, or nested deeper. */
  summaryMaxBytes: 4 * 1_024,
  summaryMaxLevels: 8,
  /** The longest error code in the telemetry: it may come from an intermediary. */
  errorCodeMaxChars: 100,
  /** After this many polls in a row without an answer, the display's state is stale. */
  staleAfterPolls: 3,
  /** After this time without an answer the state is also stale, even after fewer polls. */
  staleAfterMs: 30_000,
} as const;
