/** Every wait, size and count of the virtual devices and of the webhooks command, with its reason. Times are in milliseconds. */
export const clientLimits = {
  /** Log lines that wait for their reader; a device writes a few lines a minute. */
  logWaitingBytes: 64 * 1_024,
  /** How long the make-believe guest takes to pay. */
  collectMs: 1_000,
  /** How long after its deadline a collection has surely ended. Shorter than the kit waits for the last word of a payment. */
  endedAfterMs: 1_000,
  /** The gateway may take 12 seconds; after a time-out the outcome is unknown, and the client repeats what is safe to repeat. */
  requestTimeoutMs: 10_000,
  /** The first wait after a failure; it doubles each time. */
  backoffFirstMs: 1_000,
  /** The longest wait between two tries, so that a client is back within half a minute of the service. */
  backoffMaxMs: 30_000,
  /** The longest wait between two tries of a new session that is not yet effective; it mostly is within seconds. */
  unknownMaxMs: 5_000,
  /** A longer Retry-After than this is not believed. */
  retryAfterMaxMs: 5 * 60_000,
  /** Answers are a few hundred bytes; a larger one does not come from this service. */
  responseMaxBytes: 256 * 1024,

  /** The conformance suite: longer than any answer of the service may take. */
  conformanceAnswerMs: 15_000,
  conformancePollMs: 200,
  /** The station's lease of a run, the shortest that there is: the next run waits as long for the end of one that was killed. */
  conformanceLeaseSeconds: 30,
  /** Four renewals may fail. */
  conformanceRenewMs: 5_000,
  /** A service that checks too many passwords at once has a place again within seconds. */
  conformanceLogInTries: 5,
  /** The longest wait for a place to enroll: the throttle counts by the minute. */
  conformanceEnrollMs: 61_000,
  /** A reset, and some reads afterwards. */
  conformanceCleanUpMs: 60_000,
  /** A device that is silent is offline within 30 seconds of its last heartbeat, and the suite waits a little longer. */
  conformanceSilenceMs: 40_000,
  /** The sandbox provider decides within seconds. */
  conformanceProviderMs: 15_000,

  /** A program beside a device: two polls, a pause of the device, and a start of the program. */
  conformanceDeviceMs: 20_000,
  /** A display has shown a new state by its second poll; a poll may take a slow answer's time. */
  conformanceShownMs: 15_000,

  /** The pace of an upload: a service on the same machine takes no more than it can store, and refuses a faster one. */
  uploadBytesPerSecond: 50_000_000,
  /** What a pause has delayed is sent at once up to so much: timers fire a millisecond or two late. */
  uploadBurstMs: 100,
  /** How often the commands of reconciliation read how far an import or a run is: a person watches. */
  progressPollMs: 500,
  /** How long a command waits for another run of the account: a month takes seconds, a year a minute. */
  runWaitMs: 5 * 60_000,
  /** A page of lines or issues, each with all that its statement says: one message of the bus, written as JSON twice over. */
  pageMaxBytes: 4 * 1_024 * 1_024,
  /** Rows of a list that a person reads. */
  listedRows: 50,
  /** The webhooks command, between two requests: the service lets a consumer make five a second. */
  roboticsGapMs: 250,
  /** How often `listen` polls for new deliveries: a developer waits for them. */
  listenPollMs: 1_000,
  /** Deliveries asked for at once: some 80 KB, well within what is read of an answer. */
  deliveriesPerPage: 200,
  /** How long a local target may take, as the service itself waits. */
  forwardTimeoutMs: 10_000,
  /** Tries of one delivery; with the back-off this spans about three minutes, enough to start a program again. */
  forwardTries: 10,
  /** Tries of one request of `trigger`: a person waits for it. */
  triggerTries: 4,
  /** The shortest life that the service gives an offer. */
  shortestOfferSeconds: 5,
  /** How long `trigger` waits for an offer to expire, and how often it polls. */
  expiryWaitMs: 30_000,
  expiryPollMs: 500,
} as const;
