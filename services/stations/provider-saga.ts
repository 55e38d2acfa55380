/**
 * The provider saga: a committed `created` on the route `dynamic_qr` leads to one payment at the provider and one commit
 * of its answer. The providers service is idempotent by intent, so any host may send the request again at any time. A host
 * does so when it reads a station whose collection has no QR yet.
 *
 *   created committed ──► providers.createProviderPayment ──► qr_ready | provider_failed committed
 *                              └── no answer: pause, again; for too long: provider_failed (provider_unavailable)
 */
import type { NatsConnection } from "nats";
import type { Actor } from "../../machines/actor.ts";
import { partitionOf } from "../../machines/partition.ts";
import {
  type FailureReason,
  type PaymentIntent,
  PROVIDER_DECLINES,
  PROVIDER_END_REASONS,
  type ProviderPayment,
  STANDING_END_REASONS,
} from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { blockedReason, type KillSwitches, type StationStatus } from "../../machines/standing.ts";
import type { StationState } from "../../machines/station/state.ts";
import { BOUNDS } from "../bus/bounds.ts";
import { createProviderPayment } from "../bus/messages/provider-payments.ts";
import { call, type ReplyOf } from "../bus/operation.ts";
import { Failures } from "../bus/outage.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { SwitchesReplica } from "../bus/switches-replica.ts";
import { currentRequestId, forRequest, type Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { Mailboxes } from "./mailboxes.ts";
import { type HostCommand, isFailure, type StationAnswer, SYSTEM } from "./work.ts";

export interface ProviderSagaDeps {
  readonly nc: NatsConnection;
  readonly log: Log;
  readonly mailboxes: Mailboxes;
  readonly switches: Pick<SwitchesReplica, "current" | "isTrusted">;
}

/** A QR collection whose provider this host asks; a station has one at most. */
interface Collection {
  readonly intentId: number;
  /** As of the newest state that was read or committed. */
  stationStatus: StationStatus;
  /** True once the request is over: answered, the collection ended, or another host sends it. */
  isOver: boolean;
}

type Reply = ReplyOf<typeof createProviderPayment>;
interface Failed {
  readonly created: false;
  readonly reason: FailureReason;
}
type Answer = Extract<Reply, { created: true }> | Failed;

export class ProviderSaga {
  readonly #deps: ProviderSagaDeps;
  readonly #collections = new Map<number, Collection>();
  readonly #failures: Failures;

  constructor(deps: ProviderSagaDeps) {
    this.#deps = deps;
    this.#failures = new Failures((...line) => deps.log.warn(...line), "the providers service did not answer");
  }

  /** Notes a state that was read or committed. */
  observe(stationId: number, state: StationState): void {
    const known = this.#collections.get(stationId);
    const { intent } = state;
    const isAsked = intent !== null && intent.provider !== null && intent.status === "created";
    if (known !== undefined && (!isAsked || known.intentId !== intent.intentId)) {
      known.isOver = true;
      this.#collections.delete(stationId);
    }
    if (known !== undefined) known.stationStatus = state.status;
    if (!isAsked || intent.provider === null || known?.intentId === intent.intentId) return;
    const collection: Collection = { intentId: intent.intentId, stationStatus: state.status, isOver: false };
    this.#collections.set(stationId, collection);
    const request = { stationId, organizationId: state.organizationId, intent, asked: intent.provider };
    // The work that led here may belong to another request, or to none.
    void forRequest(intent.provider.requestId, () => this.#run(request, collection));
  }

  /** Leaves the collections of a partition to its next owner. */
  abandon(partition: number): void {
    for (const [stationId, collection] of this.#collections) {
      if (partitionOf(stationId) !== partition) continue;
      collection.isOver = true;
      this.#collections.delete(stationId);
    }
  }

  async #run(request: QrRequest, collection: Collection): Promise<void> {
    const { stationId, intent, asked } = request;
    const startedAtMs = performance.now();
    const answer = await this.#ask(request, collection);
    if (answer === undefined) return;
    const { intentId } = intent;
    const actor: Actor = isOfProvider(answer) ? { kind: "provider", id: asked.configId } : SYSTEM;
    const command: HostCommand = answer.created
      ? { type: "qr_ready", intentId, qrPayload: answer.qrPayload, providerReference: answer.providerReference }
      : { type: "provider_failed", intentId, reason: answer.reason };
    await this.#commit(stationId, collection, { commandId: `qr:${intentId}`, actor, command });
    const tookMs = Math.round(performance.now() - startedAtMs);
    this.#deps.log.info({ stationId, intentId, answer: command.type, tookMs }, "a provider was asked");
  }

  /** The provider's answer, or why there is none; undefined when the collection is over. */
  async #ask(
    { stationId, organizationId, intent, asked }: QrRequest,
    collection: Collection,
  ): Promise<Answer | undefined> {
    const { intentId, orderDisplayNumber, amountMinor, currency, expiresAtMs } = intent;
    const { configId } = asked;
    const untilMs = performance.now() + STATION_LIMITS.providerWaitMs;
    let pauseMs: number = STATION_LIMITS.providerPauseMs;
    while (!collection.isOver) {
      // A switch may have been turned on, or the station suspended, since the route was offered.
      const frozen = freezeOf({ organizationId, stationId, configId }, collection, this.#deps.switches.current());
      if (frozen !== undefined) return failed(frozen);
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return failed("provider_unavailable");
      try {
        // The provider may be frozen, so it is not asked.
        if (!this.#deps.switches.isTrusted()) throw SWITCHES_UNKNOWN;
        const answer = await call(
          this.#deps.nc,
          createProviderPayment,
          { intentId, stationId, organizationId, configId, orderDisplayNumber, amountMinor, currency, expiresAtMs },
          Math.min(STATION_LIMITS.providerAskMs, leftMs),
        );
        return withSwitchReason(
          checked(answer),
          freezeOf({ organizationId, stationId, configId }, collection, this.#deps.switches.current()),
        );
      } catch (error) {
        this.#failures.failed(error, { intentId, pauseMs });
        if (isFinal(error)) return failed("provider_unavailable");
      }
      await pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, STATION_LIMITS.providerLongestPauseMs);
    }
    return undefined;
  }

  /** Repeats until the answer is in the log, or the collection is over. */
  async #commit(
    stationId: number,
    collection: Collection,
    work: { readonly commandId: string; readonly actor: Actor; readonly command: HostCommand },
  ): Promise<void> {
    let pauseMs: number = STATION_LIMITS.providerPauseMs;
    while (!collection.isOver) {
      const answer = await new Promise<StationAnswer>((resolve) => {
        this.#deps.mailboxes.submitFirst(stationId, { ...work, requestId: currentRequestId(), answer: resolve });
      });
      if (!isFailure(answer)) return;
      await pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, STATION_LIMITS.providerLongestPauseMs);
    }
  }
}

interface QrRequest {
  readonly stationId: number;
  readonly organizationId: number;
  readonly intent: PaymentIntent;
  readonly asked: ProviderPayment;
}

/** Whether the audit log names the provider. It names the system after no answer, an unusable answer or a switch. */
function isOfProvider(answer: Answer): boolean {
  if (answer.created || answer.reason === "provider_refused") return true;
  return PROVIDER_DECLINES.some((decline) => decline === answer.reason);
}

/** Why the provider may not be asked now. What withdraws the route also ends a collection that has no QR yet. */
function freezeOf(
  { organizationId, stationId, configId }: Pick<QrRequest, "organizationId" | "stationId"> & { configId: number },
  { stationStatus }: Collection,
  switches: KillSwitches,
): FailureReason | undefined {
  const standing = blockedReason({ organizationId, stationId, stationStatus }, switches);
  const known = STANDING_END_REASONS.find((reason) => reason === standing);
  return known ?? (switches.providers.has(configId) ? "provider_frozen" : undefined);
}

const SWITCHES_UNKNOWN = new RefusedError({ code: "unavailable", detail: "The kill switches are not known now." });

function failed(reason: FailureReason): Failed {
  return { created: false, reason };
}

/** The providers service answers `provider_frozen` for every switch; the cashier gets the switch that is on. */
function withSwitchReason(answer: Answer, freeze: FailureReason | undefined): Answer {
  const isFrozen = !answer.created && answer.reason === "provider_frozen";
  return isFrozen && freeze !== undefined ? failed(freeze) : answer;
}

/** A QR that does not fit a commit is invalid: the station's state is bounded, and no phone could scan it. */
function checked(answer: Reply): Answer {
  if (!answer.created) {
    const reason = PROVIDER_END_REASONS.find((known) => known === answer.reason);
    return failed(reason ?? "provider_answer_invalid");
  }
  const { qrPayload, providerReference } = answer;
  const fits =
    qrPayload !== "" &&
    qrPayload.length <= STATE_LIMITS.qrPayloadCharacters &&
    providerReference.length <= BOUNDS.stationTextCharacters;
  return fits ? answer : failed("provider_answer_invalid");
}

/** An error that a repetition does not change. */
function isFinal(error: unknown): boolean {
  return error instanceof RefusedError && error.refusal.code !== "busy" && error.refusal.code !== "unavailable";
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
