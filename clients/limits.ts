/** Every wait, size and count of the virtual devices and of the webhooks command, with its reason. Times are in milliseconds. */
export const clientLimits = {
  /** The most log output that waits for its reader; a device writes a few lines a minute. */
  logWaitingBytes: 64 * 1_024,
  /** How long the simulated guest takes to pay. */
  collectMs: 1_000,
  /** How long after its deadline a collection has surely ended. Shorter than the kit's wait for a late outcome. */
  endedAfterMs: 1_000,
  /** The gateway may take 12 seconds; after a time-out the outcome is unknown, and the client repeats what is safe to repeat. */
  requestTimeoutMs: 10_000,
  /** The first wait after a failure; it doubles each time. */
  backoffFirstMs: 1_000,
  /** The longest wait between two tries, so that a client reconnects within half a minute after the service returns. */
  backoffMaxMs: 30_000,
  /** The longest wait between two tries with a new session; it mostly becomes effective within seconds. */
  unknownMaxMs: 5_000,
  /** The longest Retry-After that a client accepts. */
  retryAfterMaxMs: 5 * 60_000,
  /** Answers are a few hundred bytes; a larger one does not come from this service. */
  responseMaxBytes: 256 * 1024,

  /** For the conformance suite: longer than any answer of the service may take. */
  conformanceAnswerMs: 15_000,
  conformancePollMs: 200,
  /** The suite's companion sends a heartbeat before a collection when the last one is older. */
  conformanceBeatMs: 10_000,
  /** A relay that ends delays changes: another one takes over within three seconds, and one answer takes a second of them. */
  conformanceEffectMs: 10_000,
  /** A run's lease of the station, as short as possible: after a killed run the next one waits until the lease ends. */
  conformanceLeaseSeconds: 30,
  /** Four renewals may fail. */
  conformanceRenewMs: 5_000,
  /** A service that refuses a log-in because it checks many passwords at once accepts it again within seconds. */
  conformanceLogInTries: 5,
  /** The longest wait until an enrollment is allowed: the throttle counts per minute. */
  conformanceEnrollMs: 61_000,
  /** Time for a reset, and for some reads afterwards. */
  conformanceCleanUpMs: 60_000,
  /** A silent device is offline within 30 seconds after its last heartbeat. The suite waits a little longer. */
  conformanceSilenceMs: 40_000,
  /** The sandbox provider decides within seconds. */
  conformanceProviderMs: 15_000,

  /** The time for one step of a program at a device: two polls, a pause of the device, and a start of the program. */
  conformanceDeviceMs: 20_000,
  /** A display shows a new state by its second poll at the latest; a poll may take as long as a slow answer. */
  conformanceShownMs: 15_000,

  /** The pace of an upload: a service on the same machine refuses an upload that is faster than it can store. */
  uploadBytesPerSecond: 50_000_000,
  /** How much delayed data may be sent at once after a pause: timers fire a millisecond or two late. */
  uploadBurstMs: 100,
  /** How often the reconciliation commands read the progress of an import or run, which a person watches. */
  progressPollMs: 500,
  /** How long a command waits for another run of the account. A run of a month takes seconds, of a year a minute. */
  runWaitMs: 5 * 60_000,
  /** A page of lines or issues with all data of the statement: one bus message, encoded twice as JSON. */
  pageMaxBytes: 4 * 1_024 * 1_024,
  /** Rows of a list that a person reads. */
  listedRows: 50,
  /** The webhooks command's wait between two requests: the service allows a consumer five a second. */
  roboticsGapMs: 250,
  /** How often `listen` polls for new deliveries: a developer waits for them. */
  listenPollMs: 1_000,
  /** Deliveries of one request: about 80 KB, well below the largest answer that a client reads. */
  deliveriesPerPage: 200,
  /** How long a local target may take; the service itself waits as long. */
  forwardTimeoutMs: 10_000,
  /** Tries of one delivery. Their waits are 75 to 151 seconds together, enough to restart a program. */
  forwardTries: 10,
  /** Tries of one request of `trigger`; few, because a person waits for it. */
  triggerTries: 4,
  /** The shortest lifetime of an offer that the service accepts. */
  shortestOfferSeconds: 5,
  /** How long `trigger` waits for an offer to expire, and how often it polls. */
  expiryWaitMs: 30_000,
  expiryPollMs: 500,
} as const;
