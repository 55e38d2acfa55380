/** Every wait, size and count of the kit, with its reason. Times are in milliseconds. The device guide (`docs/devices.md`) names most of them. */
export const KIT_LIMITS = {
  /** The service lets a credential make one request a second, so many at once (contract, "Limits" 1). */
  requestGapMs: 1_000,
  burst: 10,
  /** Polls and heartbeats leave this many to the report. */
  burstKept: 1,
  /** The service may take 12 seconds; after this time the outcome is unknown. */
  requestTimeoutMs: 10_000,
  /** Answers are a few hundred bytes; a larger one does not come from this service. */
  answerMaxChars: 64 * 1_024,
  /** Two may be lost before the device counts as offline. */
  heartbeatEveryMs: 10_000,
  /** A device that has just started does nothing before its first heartbeat is accepted: it is repeated as often as a poll. */
  firstHeartbeatMs: 2_000,
  /** As the device guide has it. A companion polls between collections only; a display repeats a failed poll no later. */
  pollEveryMs: 2_000,
  /** A blocked device has nothing to do; it tries again at this pace. */
  blockedMs: 10_000,
  /** A credential that is not yet effective mostly is within seconds. */
  notEffectiveMs: 5_000,
  /** The first wait after a failure; it doubles each time. */
  backoffFirstMs: 1_000,
  /** The longest wait, so that a device is back within half a minute of the service. */
  backoffMaxMs: 30_000,
  /** A longer Retry-After than this is not believed. */
  retryAfterMaxMs: 300_000,
  /** The service grants a collection half an hour at most; a deadline that is further away is not believed. */
  collectionMaxMs: 31 * 60_000,
  /** After the deadline the payment application may still return what became of the payment. */
  graceMs: 3_000,
  /** How long the payment application may take to say what became of an earlier payment. */
  statusMs: 10_000,
  /** A write of some hundred bytes; one that takes longer counts as failed. */
  storageMs: 10_000,
  /** A reference or code of a payment application is a line; so the report is never longer than the service reads. */
  textMaxChars: 1_000,
  /** So many polls in a row without an answer: what the display shows is stale. */
  staleAfterPolls: 3,
  /** And so long without an answer, however few polls that is. */
  staleAfterMs: 30_000,
} as const;
