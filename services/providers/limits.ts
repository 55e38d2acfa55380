/** Every limit, wait and retry of the providers service, with its reason. */
import { CREATE_PAYMENT_ANSWER_MS } from "../bus/messages/providers.ts";

export const PROVIDER_LIMITS = {
  /** A question for a new payment is answered within this, whatever the provider does: the cashier and a guest wait. */
  createTotalMs: CREATE_PAYMENT_ANSWER_MS,
  /** One call to a provider, from the address look-up to the last byte. What is left of the total is for PostgreSQL. */
  callMs: 6_000,
  /** Bytes of a provider's answer that are read; an answer about one payment has a few hundred. */
  answerBytes: 64 * 1_024,
  /** Connections to one provider's host; further calls wait within their own deadline. */
  connectionsPerHost: 32,
  /** How often somebody who waits for another's question looks for the answer. */
  answerLookMs: 100,
  /** Characters of a QR payload: what a QR code of moderate size can hold, and a station's commit stays small. */
  qrPayloadCharacters: 1_000,
  /** Characters of a provider's own reference, which becomes part of a station's commit. */
  providerReferenceCharacters: 128,

  /** The first look at the provider's own status: a callback that has not come by then may be lost. */
  firstPollMs: 5_000,
  /** The pauses between looks grow by half, up to this. */
  pollGrowth: 1.5,
  longestPollPauseMs: 30_000,
  /** The last look, this long after the deadline: a payment made in the last second has arrived there by then. */
  pollAfterDeadlineMs: 5_000,
  /** A provider that cannot be asked after the deadline is asked again for this long; then the doubt stays with the cashier. */
  pollGiveUpMs: 3_600_000,

  /** First and longest pause before a cancellation is tried again, doubling, and for how long. */
  withdrawPauseMs: 2_000,
  longestWithdrawPauseMs: 300_000,
  withdrawGiveUpMs: 24 * 3_600_000,

  /** One attempt to tell a station, and the first and longest pause before the next; telling it never ends. */
  stationAttemptMs: 4_000,
  stationPauseMs: 200,
  longestStationPauseMs: 30_000,
  /** A station that does not know an intent is asked again for this long before the money becomes an issue. */
  intentUnknownMs: 60_000,

  /** How often due tasks are looked for; what must be at once is started by whoever wrote it. */
  taskIntervalMs: 250,
  /** Tasks of one process at work at once; each is one call to a provider or a station. */
  tasksAtOnce: 64,
  /** A task that was taken is due again after this: longer than any call, so that two never work on one. */
  taskClaimMs: 20_000,
  /** How often attributions that a crash has left are taken up, and when they count as left. */
  attributionIntervalMs: 5_000,
  attributionLeftMs: 15_000,
  attributionsPerTurn: 20,
  /** How often issues are looked for whose money has settled since, and how many are closed at once. */
  settledIssuesIntervalMs: 5_000,
  settledIssuesPerTurn: 100,

  /** How far a callback's time may be from ours, both ways: clocks differ, and a captured callback must grow stale. */
  callbackToleranceMs: 300_000,
  /** Bytes of a callback's body, as the gateway has it for every body. */
  callbackBytes: 16 * 1_024,
  /** Characters of the header with the signature that are looked at, and signatures in it that are compared. */
  signatureHeaderCharacters: 1_024,
  signaturesPerCallback: 4,
  /** Refused callbacks that are recorded per minute: of one address at one config, and of all in one process. */
  refusalsPerSource: 20,
  refusalsPerProcess: 200,
  refusalWindowSeconds: 60,
  /** Records of refused callbacks that are kept: for this long, and never more than these. */
  refusalRetentionDays: 30,
  refusalRows: 100_000,
  /** Callbacks and their answers are kept this long: longer than any provider repeats one. */
  callbackRetentionDays: 400,
  /** Finished tasks are kept for whoever looks into a fault. */
  taskRetentionDays: 30,
  housekeepingIntervalMs: 3_600_000,
  rowsPerRemoval: 1_000,

  /** Configs of one organization, so that a list is one bus message. */
  configs: 200,
  /** Characters of a secret that an owner brings. Shorter can be guessed. */
  secretCharacters: { min: 16, max: 256 },
  /** How often stations that have not been told of their provider are looked for, and how many are told in one transaction. */
  tellIntervalMs: 1_000,
  stationsPerTelling: 50,
  /** After a loss of the bus: stations marked at once as not told, and how often. */
  stationsPerRecovery: 1_000,
  recoveryIntervalMs: 1_000,
  /** Stations for whose replicas a changed config waits; with more, the change is seen a moment later. */
  flushedStations: 20,
  flushTimeoutMs: 1_000,

  /** Callbacks of one moment share the disk's flushes; the tasks that they start need connections beside them. */
  databaseConnections: 16,
  /** How long a stopping service waits for what is under way; what is cut off is due again elsewhere. */
  drainTimeoutMs: 5_000,
} as const;
