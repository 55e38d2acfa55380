/** Every limit, wait and retry of the providers service, with its reason. */
import { STATE_LIMITS } from "../../machines/settings.ts";
import { CREATE_PAYMENT_ANSWER_MS } from "../bus/messages/provider-payments.ts";

const CALL_MS = 6_000;

export const PROVIDER_LIMITS = {
  /**
   * The most time for the answer to a request for a new payment, whatever the provider does: the cashier and a guest
   * wait.
   */
  createTotalMs: CREATE_PAYMENT_ANSWER_MS,
  /** One call to a provider, from the address look-up to the last byte. */
  callMs: CALL_MS,
  /** What PostgreSQL may take before the call and again after it: half of what the call leaves of the total. */
  createMarginMs: (CREATE_PAYMENT_ANSWER_MS - CALL_MS) / 2,
  /**
   * New payments that one process requests at once: in total, for one config, and those that wait. The configs of one
   * kind call one server, and together hold at most half of the total (`FairSlots`). `creationsKeptForNewConfigs` are
   * for configs that have no request under way. So a few configs that get no answer leave room for others at the same
   * server.
   */
  creationsAtOnce: 96,
  creationsAtOncePerConfig: 16,
  creationsKeptForNewConfigs: 24,
  creationsWaiting: 96,
  creationsWaitingPerConfig: 32,
  /**
   * More than the bus's general limit of 256: 192 requests call or wait, and a request that finds no slot has read its
   * config before it is refused. A burst for a provider that does not answer must not make the bus answer `busy` to
   * requests for another.
   */
  creationRequestsInFlight: 1_024,
  /** The service starts no call for a new payment with less time than this: a slow provider takes a second or two. */
  shortestCallMs: 2_000,
  /**
   * The time-out for opening an account or renewing a secret: an owner waits, and a transaction locks the config
   * meanwhile.
   */
  renewMs: 3_000,
  /** After how long an owner may try again when the provider does not answer. */
  askAgainMs: 2_000,
  /** Bytes of a provider's answer that are read; an answer about one payment has a few hundred. */
  answerBytes: 64 * 1_024,
  /**
   * Connections to one provider's host; further calls wait within their deadline. Half of the new payments (48) and
   * half of the questions (32) may call one host at once. The rest is for owners, who open accounts and renew secrets.
   */
  connectionsPerHost: 96,
  /** How often a request that waits for another one polls for the answer. */
  answerPollMs: 100,
  /** Characters of a QR payload: the limit of a station's state. */
  qrPayloadCharacters: STATE_LIMITS.qrPayloadCharacters,
  /** Characters of a provider's reference, which becomes part of a station's commit. */
  providerReferenceCharacters: 128,
  /** Characters of the other facts that a provider asserts. A longer value is read as empty and matches nothing. */
  assertedReferenceCharacters: 200,
  assertedAccountCharacters: 64,
  saidAmountCharacters: 20,
  saidCurrencyCharacters: 10,
  /**
   * A longer event id counts as none, so that the body's hash identifies the event. Of a longer type the beginning is
   * stored.
   */
  eventIdCharacters: 200,
  eventTypeCharacters: 100,
  /** Characters of a caller's address in the record of a refusal: an IPv6 address has 39, with a zone some more. */
  addressCharacters: 64,

  /** The first poll of the provider: a callback that has not come by then may be lost. */
  firstPollMs: 5_000,
  /** The pauses between polls grow by half, up to this. */
  pollGrowth: 1.5,
  longestPollPauseMs: 30_000,
  /** How long after the deadline the last poll is: by then the provider knows a payment of the last second. */
  pollAfterDeadlineMs: 5_000,
  /** How long a provider that does not answer after the deadline is polled. Then the cashier has to find out. */
  pollGiveUpMs: 3_600_000,

  /**
   * The first and the longest pause before the next attempt to cancel (each pause is twice the last), and how long the
   * attempts go on. The longest pause is that of the polls: a guest may pay the QR until the provider has cancelled it.
   */
  withdrawPauseMs: 2_000,
  longestWithdrawPauseMs: 30_000,
  withdrawGiveUpMs: 24 * 3_600_000,

  /** One attempt to send to a station, and the first and longest pause before the next; attempts never end. */
  stationAttemptMs: 4_000,
  stationPauseMs: 200,
  longestStationPauseMs: 30_000,
  /**
   * Notices of one intent that wait for its station. More are not needed: the first one makes the outcome unknown
   * already.
   */
  noticesWaiting: 50,
  /** A station that does not know an intent is asked again for this long before the money becomes an issue. */
  intentUnknownMs: 60_000,

  /** How long after its deadline an intent has ended for sure. From then on no money of it settles without a person. */
  intentEndsMs: 30_000,

  /** How often due tasks are polled; the writer of an urgent task starts it at once. */
  taskIntervalMs: 250,
  /**
   * Tasks that one process runs at once, in two lanes: questions to providers, and commands to stations. One config has
   * at most its share of a lane. A provider that does not answer holds a slot for `callMs`, so the questions to the
   * server of one kind hold at most half of their lane. `questionsKeptForNewConfigs` are for configs with no question
   * under way.
   */
  questionsAtOnce: 64,
  commandsAtOnce: 32,
  tasksAtOncePerConfig: 8,
  questionsKeptForNewConfigs: 16,
  /**
   * Due tasks that one query reads to choose from, so that one config with many due tasks does not hide the others for
   * long.
   */
  dueTasksRead: 1_000,
  /**
   * Tasks that wait for a slot in one process, a few hundred bytes each, half of them in each lane: many seconds of
   * callbacks at the highest rate. A task that has waited for `taskWaitMs` is released, so that every task ends well
   * within its claim.
   */
  tasksWaiting: 4_096,
  tasksWaitingPerConfig: 1_024,
  taskWaitMs: 10_000,
  /** A claimed task is due again after this: longer than any call, so that two processes never work on one task. */
  taskClaimMs: 20_000,
  /**
   * The most due tasks that the gauge counts, and how long the count may take. Beyond it the exact number does not
   * matter.
   */
  summaryTasks: 10_000,
  summaryMs: 1_000,
  /** Attributions that a crash has interrupted: how often they are finished, at what age, and how many in one turn. */
  attributionIntervalMs: 5_000,
  attributionInterruptedMs: 15_000,
  attributionsPerTurn: 20,
  /**
   * The most that one person attributes alone where the organization has set nothing, in units of the currency: the
   * bill of a table. A wrong attribution above it is worth another person's check. Currencies without decimals have
   * small units. Some other currencies have small units too: there this limit is low, and two people are needed until
   * the owner sets a higher one.
   */
  aloneUnits: 100,
  aloneUnitsWithoutDecimals: 10_000,
  /**
   * How often proposals that are no longer valid are ended in the audit log, and how many at once. None can be
   * confirmed before.
   */
  proposalsIntervalMs: 5_000,
  proposalsPerTurn: 100,
  /** How often issues whose money has settled since are closed, and how many at once. */
  settledIssuesIntervalMs: 5_000,
  settledIssuesPerTurn: 100,

  /**
   * Callbacks that one process works on at once, in two groups. `callbacks…` are those whose signature is right by the
   * secrets that the process has last read. Each uses one database connection, and one config has at most its share of
   * them. `suspectCallbacks…` are all others. Each only waits for the next reading of its config, so a flood of them is
   * answered fast and takes no slot of the first group.
   */
  callbacksAtOnce: 12,
  callbacksAtOncePerConfig: 6,
  callbacksWaiting: 384,
  callbacksWaitingPerConfig: 192,
  callbackWaitMs: 4_000,
  /**
   * More than the bus's general limit of 256, because a callback waits for its slot inside its request. With 12 at
   * work, 384 that wait and 256 suspect ones, 652 are in flight. Callbacks that are refused because no slot is free
   * count as in flight too, until the process has read all that the bus sent at once, some 300 messages. With the
   * general limit a burst of 400 wrong callbacks makes the bus answer `busy` to a right one. With 16 KiB each, 1,024
   * are 22 MB.
   */
  callbackRequestsInFlight: 1_024,
  suspectCallbacksAtOnce: 256,
  suspectCallbacksAtOncePerConfig: 128,
  /**
   * Configs whose kind and secrets a process keeps in memory, about 300 bytes each. A callback for a config that is not
   * kept counts as suspect. Then how many configs one query reads, and how often new ones are read.
   */
  callbackConfigs: 100_000,
  callbackConfigsPerReading: 1_000,
  newConfigsIntervalMs: 1_000,

  /**
   * Valid secrets of one name of a config. Each ends with its own overlap or that of a later rotation, because the answers of all
   * earlier ones may be lost; each costs every callback one HMAC.
   */
  liveSecrets: 8,
  /**
   * How far a callback's time may be from the service's clock, both ways. Clocks differ, and a captured callback must
   * expire.
   */
  callbackToleranceMs: 300_000,
  /** Bytes of a callback's body: the gateway's limit for every body. */
  callbackBytes: 16 * 1_024,
  /** Later assertions of money that has an issue: how many are stored beside the first, and characters of each. */
  furtherEvidence: 8,
  furtherEvidenceCharacters: 4_096,
  /** Match keys that an issue stores of its money: one for each asserted account. With more it cannot be attributed. */
  moneyNames: 16,
  /**
   * Refused callbacks of one process per window (`CALLBACK_REFUSAL_RATE`). First, how many are answered as refused:
   * this limits the sources in memory, about 200 bytes each. Second, how many are recorded. Third, how many are
   * recorded for configs that do not exist: they show an operator a wrong address, and a few are enough for that.
   */
  refusalsAnswered: 10_000,
  refusalsRecorded: 200,
  unknownRefusalsRecorded: 20,
  /** Records of refused callbacks that are kept: for this long, and never more than these. */
  refusalRetentionDays: 30,
  refusalRows: 100_000,
  /** Callbacks and their answers are kept this long: longer than any provider repeats one. */
  callbackRetentionDays: 400,
  /** Other bodies of one event that are kept, each up to `callbackBytes`, and for how long; further ones are counted. */
  variantsPerEvent: 20,
  variantRetentionDays: 90,
  /** Finished tasks are kept for the analysis of a fault. */
  taskRetentionDays: 30,
  retention: { everyMs: 3_600_000, rowsPerBatch: 1_000 },
  /** Secrets that are sealed with a new key in one transaction: some milliseconds of work. */
  secretsResealedAtOnce: 1_000,

  /** Configs of one organization: as many as it has filials, twice, and some that are no longer used. */
  configs: 200,
  /** Characters of a secret that an owner brings. Shorter can be guessed. */
  secretCharacters: { min: 16, max: 256 },
  /** How often marked stations are announced to, and how many in one transaction. */
  announceIntervalMs: 1_000,
  stationsPerAnnouncement: 50,
  /** After a loss of the bus: stations marked at once. */
  stationsPerRecovery: 1_000,
  /**
   * The most stations that the service asks the relay to deliver to when a config changes. With more, the relay's
   * regular turns deliver, and the service polls the database until they have. Then how long an answer waits for
   * either, and how often it polls.
   */
  flushedStations: 20,
  flushTimeoutMs: 1_000,
  flushPollMs: 100,
  /** A delivery that is older than this does not count: a gateway that answers shows every change older than 1.5 s. */
  deliveredWithinMs: 5_000,

  /** Callbacks of one moment share the disk's flushes; the tasks that they start need connections beside them. */
  databaseConnections: 16,
  /** How long a stopping service waits for work under way. Another process repeats what is cut off. */
  drainTimeoutMs: 5_000,
} as const;
