/** Every queue, cache, retry and wait of the station host, each with its reason. Milliseconds unless named otherwise. */
import { CREATE_PAYMENT_ANSWER_MS } from "../bus/messages/provider-payments.ts";

export const STATION_LIMITS = {
  // Leases (design §2.3).
  /** How often a host renews its record, with all partitions it holds in one message. */
  renewMs: 500,
  /** A renewal that is not acknowledged by then is tried anew; two fit before the host has to stop itself. */
  renewTimeoutMs: 700,
  /** Without an acknowledged renewal for this long a host answers `unavailable`; it goes on when one is acknowledged. */
  selfStopMs: 1_500,
  /**
   * A host that is silent for this long is removed, and its partitions are free. Silence may be measured too long by one
   * `countedGapMs`, so a host stops itself 300 ms before that at the latest.
   */
  takeOverMs: 2_500,
  /** A host that is this late makes the others renew at each review, so that they see its age to a tenth of a second. */
  lateMs: 1_000,
  /** The most that two renewals of this host measure of the silence of others: more time between them was an election or a stall. */
  countedGapMs: 700,
  /** A record that is older when a host starts is of a dead host, whatever the server's clock is worth: it is removed at once. */
  forgottenMs: 10_000,
  /** How long after its removal the record of a host stays in a log: as long as in the bucket LEASES. */
  removedForMs: 3_600_000,
  /** How often the host reviews ownership when nothing happens. */
  reviewMs: 100,
  /** How long a partition that is handed over may finish what it has begun; the whole hand-over stays below 500 ms. */
  handOverMs: 300,

  // Commands.
  /** Waiting commands per station; each takes about a millisecond, so a longer queue only delays the answer "busy". */
  mailboxLength: 32,
  /** Waiting commands of the whole host: bounds its memory at some 10 MB when a burst hits many stations. */
  hostQueueLength: 8_192,
  /** `retryAfterMs` of the answer when a queue is full. */
  busyRetryMs: 200,
  /** `retryAfterMs` of the answer when something this host depends on does not answer. */
  unavailableRetryMs: 1_000,
  /** Attempts of one command against commits of others; two hosts that both believe they own a partition alternate at worst. */
  conflictAttempts: 8,
  /** Pause before an attempt after a conflict, times the attempt, so that two hosts do not stay in step. */
  conflictPauseMs: 5,
  /**
   * An append that is not acknowledged by then has an unknown outcome: the host reads the log back. A leader that moves loses
   * what has just reached it; a client that waits for that notices little.
   */
  appendMs: 500,
  /** How often appends are checked for that. */
  appendSweepMs: 100,
  /** Attempts of the identical append while its outcome is unknown; the requester repeats the command after that. */
  appendAttempts: 3,
  /** First and longest pause between checks of an append with unknown outcome: its station takes no commands meanwhile. */
  unknownPauseMs: 50,
  unknownLongestPauseMs: 500,
  /** One read of a station's last commit. */
  loadMs: 1_000,
  /** Asking the settlement service for an order's truth, or for an old intent: within the time that a requester waits. */
  gatherMs: 2_000,

  // Settlement.
  /** One call of the payment seam; its own statements are bounded below this. */
  settleMs: 4_000,
  /** First and longest pause between calls while the seam does not answer. */
  settlePauseMs: 50,
  settleLongestPauseMs: 2_000,
  /** The requester of an attestation gets "unavailable" after this long; a repetition joins the same settlement. */
  settleAnswerMs: 2_500,
  /** Requesters that may wait for one settlement: the cashier's repetitions. */
  settleWaiters: 8,

  // Providers.
  /** One question to the providers service. A provider may take longer: the next question joins the first one there. */
  providerAskMs: 4_000,
  /** The check for a recorded confirmation before a QR expires: one row by its key. A cashier's next collection waits for one. */
  confirmationCheckMs: 500,
  /** The same check for a command, after an earlier one had no answer: the service may be back, and most likely is not. */
  confirmationRecheckMs: 250,
  /** Checks that deadlines have started and that run at once: after a take-over many QRs may be overdue. */
  confirmationChecksAtOnce: 64,
  /** How long a question may stay unanswered: the service's own deadline for a provider and one more question, bearable at a counter. */
  providerPatienceMs: CREATE_PAYMENT_ANSWER_MS + 4_000,
  /** First and longest pause between questions, and between attempts to commit an answer. */
  providerPauseMs: 50,
  providerLongestPauseMs: 1_000,
  /** First and longest pause between attempts to report the end of a QR collection, which are made until one succeeds. */
  withdrawPauseMs: 200,
  withdrawLongestPauseMs: 10_000,
  /** Ends that one host reports at once, so that it does not send all of them when the providers service comes back. */
  withdrawalsAtOnce: 64,

  // Deadlines and liveness.
  /** How often the host checks for due deadlines; an expiry is this much late at most. */
  tickMs: 50,
  /** Deadlines taken per partition and check, so that a million that are due at once do not delay everything else. */
  dueAtOnce: 100,
  /** Pause before a deadline or a liveness change that could not be committed is tried again. */
  retryMs: 500,
  /** Commands that the host gives itself (deadlines, liveness, recovery), under way at once: a take-over must not starve requesters. */
  localConcurrency: 64,
  /** A consumer of one partition makes the server search the whole stream, so from this many partitions on it is read as a whole. */
  scanWholeFrom: 16,
  /** Consumers of single partitions at once. */
  scanConcurrency: 2,
  /** About 50,000 stations a second. Unbounded, a scan of 200,000 takes half the time and stops all appends meanwhile. */
  scanBitsPerSecond: 60_000_000,
  /** Pause before a scan that failed is tried again. */
  scanRetryMs: 500,
  /**
   * How long after a scan the host waits for commits of the previous host. One that was under way at the release may be stored
   * as long after it as a connection may stall before the bus drops it, which is 6 s.
   */
  lateCommitsMs: 10_000,

  // Memory.
  /** States kept decoded (about 15 KB each): the stations of the busiest minutes; others are read again in one round trip. */
  cachedStates: 4_096,
} as const;
