/**
 * The settlement saga: a committed `settling` leads to one call of the payment seam and one commit of its answer
 * (design §2.4). The seam is idempotent by intent, so any host may start the saga again at any time. A host does so when it
 * reads a station that is settling.
 *
 *   settling committed ──► settlement.settleIntent ──► settlement_succeeded | settlement_refused committed
 *                              └── no answer: pause, again         └──► attestation answered
 */
import type { NatsConnection } from "nats";
import { partitionOf } from "../../machines/partition.ts";
import type { Attestation, PaymentIntent } from "../../machines/payment-intent.ts";
import { moneyKey, moneyName, settleIntent } from "../bus/messages/intents.ts";
import { call, type ReplyOf } from "../bus/operation.ts";
import { Failures } from "../bus/outage.ts";
import { currentRequestId, forRequest, type Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { Mailboxes } from "./mailboxes.ts";
import type { HostMetrics } from "./metrics.ts";
import { isFailure, type LocalCommand, type StationAnswer, UNAVAILABLE, type Work } from "./work.ts";

export interface SettlementSagaDeps {
  readonly nc: NatsConnection;
  readonly log: Log;
  readonly mailboxes: Mailboxes;
  readonly metrics: HostMetrics;
}

interface Settlement {
  readonly intentId: number;
  /** Distinguishes a second attestation of the same intent, after a refusal of the first, from a repetition. */
  readonly attestationId: string;
  /** When it was attested, in the time of the bus. */
  readonly attestedAtMs: number;
  /** The attestation's requester and its repetitions. */
  readonly waiting: Map<Work, NodeJS.Timeout>;
  isAbandoned: boolean;
}

/** The station takes no commit now: the host has no answer of the log, or too many commands wait. */
class NotCommittedError extends Error {
  readonly code = "settlement_not_committed";
  constructor() {
    super("The outcome of a settlement could not be committed yet.");
    this.name = "NotCommittedError";
  }
}

export class SettlementSaga {
  readonly #deps: SettlementSagaDeps;
  readonly #settlements = new Map<number, Settlement>();
  readonly #failures: Failures;

  constructor(deps: SettlementSagaDeps) {
    this.#deps = deps;
    this.#failures = new Failures((...line) => deps.log.warn(...line), "a settlement has to wait");
  }

  /** Starts a settlement and completes it; does nothing when it is under way already. */
  start(stationId: number, intent: PaymentIntent): void {
    const { intentId } = intent;
    const { commandId: attestationId, atMs: attestedAtMs, requestId } = attestationOf(intent);
    const underWay = this.#settlements.get(stationId);
    if (underWay?.intentId === intentId && underWay.attestationId === attestationId) return;
    const settlement: Settlement = { intentId, attestationId, attestedAtMs, waiting: new Map(), isAbandoned: false };
    this.#settlements.set(stationId, settlement);
    // The work that led here may belong to another request, or to none.
    void forRequest(requestId, () => this.#run(stationId, settlement, intent));
  }

  /** Lets work wait for the end of the settlement; false when too much waits already, or no settlement is under way. */
  await(stationId: number, work: Work): boolean {
    const settlement = this.#settlements.get(stationId);
    if (settlement === undefined || settlement.waiting.size >= STATION_LIMITS.settleWaiters) return false;
    const timer = setTimeout(() => {
      settlement.waiting.delete(work);
      work.answer(UNAVAILABLE);
    }, STATION_LIMITS.settleAnswerMs);
    settlement.waiting.set(work, timer);
    return true;
  }

  /** Leaves the settlements of a partition to its next owner. */
  abandon(partition: number): void {
    for (const [stationId, settlement] of this.#settlements) {
      if (partitionOf(stationId) !== partition) continue;
      settlement.isAbandoned = true;
      this.#settlements.delete(stationId);
      for (const work of this.#takeWaiting(settlement)) work.answer(UNAVAILABLE);
    }
  }

  isBusy(partitions: ReadonlySet<number>): boolean {
    for (const stationId of this.#settlements.keys()) if (partitions.has(partitionOf(stationId))) return true;
    return false;
  }

  /** How long ago the oldest attestation was whose settlement has not ended; 0 when there is none. */
  oldestAgeMs(nowMs: number): number {
    let oldestMs = nowMs;
    for (const { attestedAtMs } of this.#settlements.values()) oldestMs = Math.min(oldestMs, attestedAtMs);
    return nowMs - oldestMs;
  }

  async #run(stationId: number, settlement: Settlement, intent: PaymentIntent): Promise<void> {
    const startedAtMs = performance.now();
    const outcome = await this.#retry(settlement, () => this.#callSeam(stationId, intent));
    if (outcome === undefined) return;
    const { intentId } = intent;
    const attestationId = attestationOf(intent).commandId;
    const command: LocalCommand = outcome.settled
      ? { type: "settlement_succeeded", intentId, transactionId: outcome.transactionId }
      : { type: "settlement_refused", intentId, code: outcome.code, attestationId, earlier: outcome.earlier };
    const committed = await this.#retry(settlement, () => this.#commit(stationId, command));
    if (committed === undefined) return;
    const { settled } = outcome;
    this.#deps.metrics.settlements.add({ result: outcome.settled ? "succeeded" : outcome.code });
    this.#deps.log.info(
      { stationId, intentId, settled, tookMs: Math.round(performance.now() - startedAtMs) },
      "settlement ended",
    );
    if (this.#settlements.get(stationId) === settlement) this.#settlements.delete(stationId);
    // The commit has the attestation's answer now, so the work that waits is answered like a repetition, and first: a full
    // mailbox must not answer "busy", which would mean that nothing was done.
    for (const work of this.#takeWaiting(settlement)) this.#deps.mailboxes.submitFirst(stationId, work);
  }

  async #callSeam(stationId: number, intent: PaymentIntent): Promise<ReplyOf<typeof settleIntent>> {
    const { intentId, orderId, route, amountMinor, currency } = intent;
    const attestation = attestationOf(intent);
    const { commandId: attestationId, reference, cashierId: attestedBy, confirmsReferenceAlreadyUsed } = attestation;
    const attested = { attestationId, reference, attestedBy, confirmsReferenceAlreadyUsed };
    const asked = { intentId, stationId, orderId, route, amountMinor, currency, ...attested };
    return await call(this.#deps.nc, settleIntent, { ...asked, ...paymentKeyOf(intent) }, STATION_LIMITS.settleMs);
  }

  async #commit(stationId: number, command: LocalCommand): Promise<StationAnswer> {
    const intentId = "intentId" in command ? command.intentId : 0;
    const answer = await new Promise<StationAnswer>((resolve) => {
      this.#deps.mailboxes.submitFirst(stationId, {
        commandId: `settled:${intentId}`,
        actor: { kind: "settlement", id: 0 },
        command,
        requestId: currentRequestId(),
        answer: resolve,
      });
    });
    if (isFailure(answer)) throw new NotCommittedError();
    return answer;
  }

  /** Repeats with growing pauses until it succeeds; undefined when the partition was released meanwhile. */
  async #retry<T>(settlement: Settlement, attempt: () => Promise<T>): Promise<T | undefined> {
    let pauseMs: number = STATION_LIMITS.settlePauseMs;
    while (!settlement.isAbandoned) {
      try {
        return await attempt();
      } catch (error) {
        this.#deps.metrics.settlementRetries.add({});
        this.#failures.failed(error, { intentId: settlement.intentId, pauseMs });
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      pauseMs = Math.min(pauseMs * 2, STATION_LIMITS.settleLongestPauseMs);
    }
    return undefined;
  }

  #takeWaiting(settlement: Settlement): Work[] {
    const waiting = [...settlement.waiting];
    settlement.waiting.clear();
    return waiting.map(([work, timer]) => {
      clearTimeout(timer);
      return work;
    });
  }
}

/** The match key of the provider's payment, the same for every attestation, so that the payment settles once (design §2.4). */
function paymentKeyOf({ intentId, provider }: PaymentIntent): { readonly moneyKey?: string } {
  if (provider === null) return {};
  const { configId, providerReference } = provider;
  return { moneyKey: moneyKey({ configId, name: moneyName(providerReference, `intent:${intentId}`) }) };
}

/** Every intent that is settling has an attestation. */
function attestationOf({ intentId, attestation }: PaymentIntent): Attestation {
  if (attestation === null) throw new Error(`Intent ${intentId} is settling without an attestation.`);
  return attestation;
}
