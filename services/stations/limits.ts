/** Every queue, cache, retry and wait of the station host, each with its reason. Times are in milliseconds unless the name has another unit. */
import { CREATE_PAYMENT_ANSWER_MS } from "../bus/messages/provider-payments.ts";

export const STATION_LIMITS = {
  // Leases (design §2.3).
  /** How often a host renews its record, one message with all partitions that it holds. */
  renewMs: 500,
  /**
   * The host sends another renewal when one is not acknowledged by then. Two attempts fit before `selfStopMs`. An
   * acknowledgement counts that comes later, so a lease has no gap while acknowledgements take less than half of `selfStopMs`.
   */
  renewAgainMs: 700,
  /** After this long without an acknowledged renewal, a host answers `unavailable` until one is acknowledged. */
  selfStopMs: 1_500,
  /**
   * Other hosts remove a host that is silent for this long, and its partitions are free. They may measure the silence
   * `countedGapMs` too long. `selfStopMs` leaves 300 ms beside that, and they wait at least `selfStopMs` after its newest record
   * has come. So the host has stopped when its partitions are free.
   */
  takeOverMs: 2_500,
  /** When a host is silent for this long, the others renew at each review, to measure its silence to a tenth of a second. */
  lateMs: 1_000,
  /** The most silence of others that this host counts between two of its renewals: a longer gap is an election or a stall. */
  countedGapMs: 700,
  /** A host that starts removes an older record at once: its host is dead, even if the server's clock is somewhat wrong. */
  forgottenMs: 10_000,
  /** How long a log keeps the record of a removed host: as long as the bucket LEASES does. */
  removedForMs: 3_600_000,
  /** How often the host reviews ownership when nothing happens. */
  reviewMs: 100,
  /** How long a host may finish begun work before it hands a partition over; the whole hand-over takes less than 500 ms. */
  handOverMs: 300,

  // Commands.
  /** Waiting commands per station; each takes about a millisecond, so a longer queue only delays the answer "busy". */
  mailboxLength: 32,
  /** Waiting commands of the whole host: at most about 10 MB of memory when a burst hits many stations. */
  hostQueueLength: 8_192,
  /** `retryAfterMs` of the answer when a queue is full. */
  busyRetryMs: 200,
  /** `retryAfterMs` of the answer when a service or server that this host depends on does not answer. */
  unavailableRetryMs: 1_000,
  /** Attempts of one command that conflicts with other commits: at worst, two hosts that claim one partition alternate. */
  conflictAttempts: 8,
  /** Pause after a conflict, multiplied by the number of the attempt, so that two hosts do not conflict at each attempt. */
  conflictPauseMs: 5,
  /**
   * An append that is not acknowledged by then has an unknown outcome, and the host reads the log back. The host does so
   * earlier when the log reports a new leader: the earlier leader loses appends that have just reached it.
   */
  appendMs: 500,
  /** How often the host checks for appends and confirmations that take too long. */
  appendSweepMs: 100,
  /**
   * A confirmation that a state is the newest has failed when the log does not acknowledge it by then: nothing can be read
   * back in its place. A slow log takes less, and a request to a station waits for 4 s.
   */
  confirmMs: 1_500,
  /** Attempts of the identical append while its outcome is unknown. After that the requester repeats the command. */
  appendAttempts: 3,
  /** First and longest pause between checks of an append with unknown outcome: its station takes no commands meanwhile. */
  unknownPauseMs: 50,
  unknownLongestPauseMs: 500,
  /** One read of a station's last commit. */
  loadMs: 1_000,
  /** One request to the settlement service for order truth, or for an old intent: shorter than a requester waits. */
  gatherMs: 2_000,

  // Settlement.
  /** One call of the payment seam. The statements of the seam have lower limits. */
  settleMs: 4_000,
  /** First and longest pause between calls while the seam does not answer. */
  settlePauseMs: 50,
  settleLongestPauseMs: 2_000,
  /** The requester of an attestation gets "unavailable" after this long; a repetition joins the same settlement. */
  settleAnswerMs: 2_500,
  /** Requesters that may wait for one settlement: the cashier's repetitions. */
  settleWaiters: 8,

  // Providers.
  /** One question to the providers service. A provider may take longer; the next question then joins the first one. */
  providerAskMs: 4_000,
  /** The check for a recorded confirmation before a QR expires: one row by its key. The cashier's next collection waits. */
  confirmationCheckMs: 500,
  /** The same check for a command after an earlier check had no answer: most likely the service is still unavailable. */
  confirmationRecheckMs: 250,
  /** Concurrent checks that deadlines start: after a take-over many QRs may be overdue. */
  confirmationChecksAtOnce: 64,
  /** How long a question may stay unanswered: the service's deadline for a provider, and one more question. */
  providerWaitMs: CREATE_PAYMENT_ANSWER_MS + 4_000,
  /** First and longest pause between questions, and between attempts to commit an answer. */
  providerPauseMs: 50,
  providerLongestPauseMs: 1_000,
  /** First and longest pause between attempts to report the end of a QR collection. The host tries until one succeeds. */
  withdrawPauseMs: 200,
  withdrawLongestPauseMs: 10_000,
  /** Concurrent reports of such ends from one host, so that a providers service that comes back does not get all at once. */
  withdrawalsAtOnce: 64,

  // Deadlines and liveness.
  /** Reads of stored heartbeats of devices that seem silent: after a power cut all devices of a city are. */
  heartbeatReadsAtOnce: 64,
  /** How often the host checks for due deadlines; an expiry is late by this much at most. */
  tickMs: 100,
  /** Deadlines that one check takes per partition, so that a million due deadlines do not delay all other work. */
  dueAtOnce: 100,
  /** Pause before the host retries a deadline or a liveness change that it could not commit. */
  retryMs: 500,
  /** Concurrent self-issued commands (deadlines, liveness, recovery): after a take-over, requesters need capacity too. */
  localConcurrency: 64,
  /** The server searches the whole stream for one partition. From this many partitions on, one consumer reads all of it. */
  scanWholeFrom: 16,
  /** Concurrent consumers of single partitions. */
  scanConcurrency: 2,
  /** About 50,000 stations a second. Without it, a scan of 200,000 takes half the time but stops all appends meanwhile. */
  scanBitsPerSecond: 60_000_000,
  /**
   * How long a scan waits for what the leader has and the copy that it reads lacks. A copy that works lags by milliseconds.
   * After that the scan fails, and the host repeats it, probably from another copy.
   */
  scanLagMs: 2_000,
  /** Pause before the host repeats a failed scan. */
  scanRetryMs: 500,
  /**
   * How long after a scan the host waits for commits of the previous host. A commit that was under way at the release may be
   * stored up to 6 s later: a connection may stall for that long before the bus drops it.
   */
  lateCommitsMs: 10_000,
  /**
   * The same on a cluster: a route between servers holds what it could not send for up to four of its ping intervals of 30 s.
   * Meanwhile the host receives the headers of all commits of the log, which costs the server a fifth more for each.
   */
  lateCommitsOnClusterMs: 130_000,

  // Memory.
  /** Decoded states (about 15 KB each) of the stations used last. The host reads another state again in one round trip. */
  cachedStates: 4_096,
} as const;
