/** Every limit of the webhook signer, with its reason. The documents give consumers and owners the same numbers. */
import { BREAKER_RULES } from "../../machines/webhook-breaker.ts";
import { DELIVERY_RULES } from "../../machines/webhook-delivery.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

export const SIGNER_LIMITS = {
  /** When a delivery is sent again, and when the breaker of an endpoint opens: the machines' rules. */
  ...DELIVERY_RULES,
  ...BREAKER_RULES,
  inFlightPerOwner: 16,
  /** Attempts under way in this process: each uses a socket, and memory for its answer. */
  inFlight: 256,
  /**
   * Slots of the process, and of one owner, that are kept for two kinds of endpoints. The last answer of the first kind
   * was a success within `promptMs`. The second kind has no answer yet; probes of open breakers count as this kind. So
   * slow targets, however many, do not delay the others.
   */
  keptForPrompt: 64,
  keptForPromptOfOwner: 4,
  keptForUntried: 32,
  keptForUntriedOfOwner: 2,
  /**
   * A success within this time gives the endpoint more attempts at once. It begins with one, so that many slow targets
   * hold few slots.
   */
  promptMs: 2 * SECOND_MS,
  /** Deliveries of one endpoint read ahead: at first as many as may be in flight, and more while it is fast. */
  firstWindow: 4,
  longestWindow: 256,
  /** Deliveries in hand in all, about a kilobyte each; with more of them each endpoint reads only the first window ahead. */
  inHand: 20_000,
  /** The precision of the stored time of an endpoint's last success, so that not every delivery writes it. */
  successNoteMs: SECOND_MS,
  /**
   * How old the cached endpoint and its secrets may be when an attempt begins. A change notifies all processes; this is the
   * limit when the notification is lost.
   */
  knowledgeMs: SECOND_MS,
  /** How long an endpoint without work is remembered with its breaker; its row has the same state by then. */
  endpointMemoryMs: MINUTE_MS,
  /** An answer within this is fast: a full window is then sent within seconds, and waits in memory for no longer. */
  fastMs: 250,
  /** How long before its end a lease counts as over: a quick attempt has ended when another process takes the owner. */
  leaseMarginMs: SECOND_MS,
  /** How long a process that released an owner takes no other, because the other processes search once a second. */
  ownerRestMs: 3 * SECOND_MS,
  /** Outcomes that wait for PostgreSQL. At this many the process sends nothing: an outcome that is lost means a second delivery. */
  unwrittenOutcomes: 2_000,
  /**
   * Outcomes in one statement, and how long after the last one began the next may begin: a statement costs as much
   * as twenty outcomes. When a process is killed, the deliveries of outcomes not yet written are sent again.
   */
  outcomesPerWrite: 500,
  shortestWriteTurnMs: 50,
  /**
   * How often the process tries to write outcomes, and the first pause, which grows. A delivery without a written
   * outcome is sent again.
   */
  writeAttempts: 20,
  writePauseMs: 100,
  /** The pause after a poll for due deliveries that failed. */
  pollRetryMs: 100,
  /** How often an owner checks whether sending still waits for disk space. */
  pausedMs: SECOND_MS,
  /** The longest pause of an owner that nothing wakes; events wake it, and a due delivery does once a second. */
  longestPauseMs: 10 * SECOND_MS,

  /** How long an owner's lease lasts: after this another process takes over from a dead one, well within the 30 s promised. */
  ownerLeaseMs: 10 * SECOND_MS,
  /**
   * How often leases are renewed and free owners searched for, and the shortest time between two turns when news wakes
   * it.
   */
  ownerTurnMs: SECOND_MS,
  shortestOwnerTurnMs: 50,
  /** Owners taken at once, and held in all: each costs a few kilobytes and a query every ten seconds. */
  ownersPerTake: 100,
  owners: 2_000,
  /**
   * How often clocks are compared. A reading that took longer than `clockReadMs` is repeated up to `clockReads` times.
   * A difference beyond `wrongClockMs` is logged: consumers refuse signatures that are five minutes off, and other
   * programs on the machine use its clock.
   */
  clockIntervalMs: MINUTE_MS,
  clockReadMs: 50,
  clockReads: 3,
  wrongClockMs: 2 * SECOND_MS,
  /** After this the record of a process that ended without removing it is deleted. */
  deadSignerMs: HOUR_MS,

  /** Events written in one transaction. */
  eventsPerBatch: 256,
  /**
   * How long one request for events stays open, and how often the server sends a heartbeat meanwhile. Two missing
   * heartbeats show that the consumer's server is gone: the client then makes a new request, as it does when one expires. The
   * client's defaults are 30 and 15 s.
   */
  pullExpiresMs: 2 * SECOND_MS,
  pullHeartbeatMs: 500,
  /** How long the signer waits for information about the consumer; while its servers elect a leader, none comes. */
  consumerAnswerMs: SECOND_MS,
  /** How soon events that could not be written come again. */
  eventPauseMs: SECOND_MS,
  /** How long the bus waits for an acknowledgement before it brings an event again. */
  ackWaitMs: 5 * SECOND_MS,
  /** Pause before the signer follows the stream again, after the bus has lost the stream or its consumer. */
  followPauseMs: SECOND_MS,
  /**
   * How often the signer searches for events that the bus has lost, the age from which one counts as lost, and how many
   * at once. The first search is one interval after the start.
   */
  sweepIntervalMs: 10 * SECOND_MS,
  lostAfterMs: 10 * SECOND_MS,
  lostPerSweep: 1_000,
  /** How far back it searches, and how often it searches the whole outbox; the first search is one of these. */
  sweepWindowMs: 10 * MINUTE_MS,
  wholeSweepIntervalMs: HOUR_MS,
  /** Expired offers that one statement ends. The signer never sends an expired offer. */
  lapsedPerSweep: 1_000,

  /** Endpoints of one consumer: an old one and a new one while moving, and one for tests; each multiplies deliveries. */
  endpointsPerConsumer: 5,
  /** Random bytes of a secret. */
  secretBytes: 32,
  /** Live secrets of one endpoint: each adds a signature to every delivery. */
  liveSecrets: 2,
  /**
   * Owners' tests under way in this process, and those of one owner: each test waits for its target, and a person waits
   * for the test. An endpoint has one test at a time, beside its deliveries in flight.
   */
  testsAtOnce: 16,
  testsAtOncePerOwner: 4,
  /** Attempts of one delivery that an owner is shown: the schedule's ten, and as many by hand. */
  attemptsShown: 100,
  /**
   * How long counting due deliveries for the metrics may take, and how many it counts at most: beyond that the number
   * no longer matters.
   */
  summaryMs: 400,
  summaryRows: 10_000,
  /** The record that an event was taken is kept longer than the outbox keeps the event. */
  eventRetentionDays: 3,
  /** Secrets that one transaction seals with the current key. */
  secretsPerReseal: 100,
  /** How often the retention job of each process runs, and how many rows one statement deletes. */
  retention: { everyMs: 10 * MINUTE_MS, rowsPerBatch: 1_000 },
  /** Connections to PostgreSQL: requests, reads and outcomes side by side. */
  databaseConnections: 12,
  /**
   * How long a stopping process waits for work under way. The process is ended after ten seconds, and must have
   * released its leases by then. An attempt that is cut off is made again.
   */
  drainTimeoutMs: 6 * SECOND_MS,
} as const;

/** What one attempt may take and what is read of its answer, with the limits of the checks in `target/`. */
export const TARGET_LIMITS = {
  /** From the address look-up to the answer's last byte: this also ends an answer that comes byte by byte. */
  attemptMs: 10 * SECOND_MS,
  /** Of that, both address look-ups. */
  dnsMs: 2 * SECOND_MS,
  /** Of that, TCP and TLS together. */
  connectMs: 3 * SECOND_MS,
  /**
   * How long an address is tried before the host's next one, and how many are tried: the last one still has time to
   * answer.
   */
  addressMs: 500,
  addressesTried: 4,
  /** Addresses of one host that are checked against the rule; a host with more is refused. */
  addresses: 32,
  /** Questions to one name server before the next is asked; all together end with `dnsMs`. */
  dnsQuestionMs: 700,
  /** Bytes of an answer's body that are read; then its connection is destroyed. */
  answerBytes: 16 * 1_024,
  /** Bytes of the answer's head; a head that is longer is refused. */
  headBytes: 16 * 1_024,
  /** Bytes of one answer as they come in, with heads and framing: an answer can be endless without a body. */
  wireBytes: 256 * 1_024,
  /** Bytes of the answer's beginning that the attempt's record keeps. */
  excerptBytes: 1_024,
  /**
   * An open connection stays with the address that was checked. It is closed after this, so that a change of the host's
   * addresses takes effect.
   */
  connectionMs: 30 * SECOND_MS,
  /** How long an open connection waits for the next delivery; many servers close after five seconds. */
  idleMs: 4 * SECOND_MS,
  /** Open connections without work: in all as many as can be at work, to one target as many as one owner may use. */
  idleConnections: 256,
  idleConnectionsPerTarget: 16,
  /** URLs and addresses whose checks are kept in memory for the next delivery: a few hundred bytes each. */
  rememberedTargets: 1_000,
  /**
   * How long the list of this machine's addresses is used: interfaces seldom change, and reading them takes a system
   * call.
   */
  ownAddressesMs: 5 * SECOND_MS,
} as const;
