/**
 * A small language in which tests of the station read as sentences:
 *
 *   aCounter().leased().order().picks("smart_pos").fetches().reports("reported_success").attests().settles()
 *
 * Each sentence is one command to the real machine. Inputs and states are frozen. After every step, the scenario checks the
 * invariants that hold for all steps.
 */

import type { Actor } from "../../machines/actor.ts";
import type {
  EarlierSale,
  FailureReason,
  PaymentIntent,
  ReportedOutcome,
  Route,
} from "../../machines/payment-intent.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { type BlockedReason, type KillSwitches, NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { LeaseTerms, MoneyConfirmation, StationCommand } from "../../machines/station/command.ts";
import { type Commit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import type { RecordedConfirmation, StepInput } from "../../machines/station/outcome.ts";
import type { SettlementRefusal, StationReply } from "../../machines/station/reply.ts";
import {
  type DeviceDescription,
  findDevice,
  findIntent,
  type OrderSnapshot,
  type OrderStatus,
  type StationDescription,
  type StationState,
} from "../../machines/station/state.ts";
import { type Step, step } from "../../machines/station/step.ts";
import { type DisplayView, displayView } from "../../machines/views/display.ts";
import { checkStep, deepFreeze } from "./invariants.ts";
import { MoneyWitness, NewsWitness } from "./provider-invariants.ts";

export const START_MS = Date.UTC(2026, 10, 21, 12);

export const CASEY: Actor = { kind: "cashier", id: 31, name: "Casey" };
export const ROBIN: Actor = { kind: "cashier", id: 32, name: "Robin" };
export const OWNER: Actor = { kind: "owner", id: 41, name: "Olga" };
/** Two sessions of Casey and one of Robin. */
export const CASEYS = { sessionId: 61, expiresAtMs: START_MS + 12 * 3_600_000 };
export const CASEYS_OTHER = { ...CASEYS, sessionId: 62 };
export const ROBINS = { ...CASEYS, sessionId: 63 };
export const COMPANION: Actor = { kind: "device", id: 701 };
export const SECOND_COMPANION: Actor = { kind: "device", id: 703 };
export const DISPLAY: Actor = { kind: "device", id: 702 };
export const REGISTRY: Actor = { kind: "registry", id: 0 };
export const SETTLEMENT: Actor = { kind: "settlement", id: 0 };
export const SYSTEM: Actor = { kind: "system", id: 0 };
/** The provider config of the counter. */
export const PROVIDER: Actor = { kind: "provider", id: 81 };
export const QR = "00020101021226330014br.gov.bcb.pix";

export const STATION: StationDescription = {
  organizationId: 11,
  filialId: 21,
  name: "Counter 1",
  currency: "EUR",
  status: "active",
  revision: 1,
};
export const STATION_ID = 12_345;

export const COMPANION_DEVICE: DeviceDescription = {
  deviceId: COMPANION.id,
  name: "Companion",
  kind: "smart_pos_companion",
  capabilities: ["handoff_present", "outcome_report"],
  status: "active",
  handoffTarget: "posapp://collect/one",
  revision: 1,
};
export const DISPLAY_DEVICE: DeviceDescription = {
  deviceId: DISPLAY.id,
  name: "Display",
  kind: "customer_display",
  capabilities: ["display_total"],
  status: "active",
  handoffTarget: "",
  revision: 1,
};
export const ORDER: OrderSnapshot = {
  orderId: 501,
  orderDisplayNumber: 7,
  amountMinor: "1250",
  currency: "EUR",
  status: "open",
  revision: 1,
};

/** How one command is sent when the defaults of its sentence do not fit. */
interface Sending {
  readonly by?: Actor;
  readonly key?: string;
  readonly intentId?: number;
}

/** `true` confirms every reason; an object confirms what it names. */
function moneyConfirmation(confirms: boolean | MoneyConfirmation | undefined): MoneyConfirmation {
  return typeof confirms === "object"
    ? { confirmsMoneyMayHaveMoved: true, ...confirms }
    : { confirmsMoneyMayHaveMoved: confirms };
}

export class Scenario {
  state: StationState | null = null;
  atMs = START_MS;
  switches: KillSwitches = NO_KILL_SWITCHES;
  recalled: PaymentIntent | undefined;
  recalledOrder: OrderStatus | undefined;
  recordedConfirmation: RecordedConfirmation = "none";
  requestId: string | undefined;
  readonly commits: Commit[] = [];
  #last: Step | { readonly state: null; readonly reply: StationReply } | undefined;
  readonly #money = new MoneyWitness();
  readonly #news = new NewsWitness();
  #commands = 0;
  #intents = 1_000;
  #shown: OrderSnapshot = ORDER;

  /** Sends any command. Every sentence below calls it. */
  send(command: StationCommand, by: Actor, key?: string): this {
    this.#commands += 1;
    const input: StepInput = deepFreeze({
      command,
      commandId: key ?? `command-${this.#commands}`,
      actor: by,
      atMs: this.atMs,
      switches: this.switches,
      settings: DEFAULT_MACHINE_SETTINGS,
      recalled: this.recalled,
      recalledOrder: this.recalledOrder,
      recordedConfirmation: this.recordedConfirmation,
      requestId: this.requestId,
    });
    const before = this.state;
    const after = deepFreeze(step(before, input));
    this.#last = after;
    if (after.state === null) return this;
    checkStep(before, input, after);
    this.#money.see(after);
    this.#news.see(after);
    this.state = after.state;
    if (after.events.length > 0) {
      const { commandId, actor, atMs } = input;
      const { events, reply, state } = after;
      const version = this.commits.length + 1;
      this.commits.push({ machineVersion: MACHINE_VERSION, version, atMs, commandId, actor, events, reply, state });
    }
    return this;
  }

  // The effects of time and standing.

  waits(ms: number): this {
    this.atMs += ms;
    return this;
  }
  ticks(): this {
    return this.send({ type: "tick" }, SYSTEM);
  }
  freezes(switches: Partial<KillSwitches>): this {
    this.switches = { ...NO_KILL_SWITCHES, ...switches };
    return this;
  }
  describesStation(change: Partial<StationDescription> = {}): this {
    const station = { ...STATION, ...change };
    return this.send({ type: "station_put", stationId: STATION_ID, station }, REGISTRY);
  }
  describesDevice(device: DeviceDescription): this {
    return this.send({ type: "device_put", device }, REGISTRY);
  }
  receivesHeartbeat(device: Actor = COMPANION, seenAtMs: number = this.atMs): this {
    return this.send({ type: "device_seen", deviceId: device.id, seenAtMs }, SYSTEM);
  }
  /** The host noticed that the device is silent since its last heartbeat, by default the last committed one. */
  noticesSilence(device: Actor = COMPANION, lastHeartbeatAtMs?: number): this {
    const lastSeenAtMs = lastHeartbeatAtMs ?? this.device(device)?.liveness.lastSeenAtMs ?? this.atMs;
    return this.send({ type: "device_silent", deviceId: device.id, lastSeenAtMs }, SYSTEM);
  }

  // The cashier's commands.

  leased(by: Actor = CASEY, lifetimeMs?: number, session?: LeaseTerms["session"]): this {
    return this.send({ type: "lease_acquire", lifetimeMs, session }, by);
  }
  takesOver(by: Actor = ROBIN, from: Actor = CASEY): this {
    return this.send({ type: "lease_acquire", takeOverFrom: from.id }, by);
  }
  renews(by: Actor = CASEY, lifetimeMs?: number, session?: LeaseTerms["session"]): this {
    return this.send({ type: "lease_renew", lifetimeMs, session }, by);
  }
  endsSessions(...sessionIds: readonly number[]): this {
    return this.send({ type: "sessions_ended", sessionIds }, REGISTRY);
  }
  breaksLease(by: Actor = OWNER): this {
    return this.send({ type: "lease_break" }, by);
  }
  releases(by: Actor = CASEY): this {
    return this.send({ type: "lease_release" }, by);
  }
  picks(
    route: Route,
    more: Sending & {
      deviceId?: number;
      lifetimeMs?: number;
      order?: OrderSnapshot;
      confirms?: boolean | MoneyConfirmation;
    } = {},
  ): this {
    this.#intents += 1;
    const { deviceId, lifetimeMs, order = this.#shown, intentId = this.#intents } = more;
    return this.send(
      { type: "intent_create", route, intentId, order, deviceId, lifetimeMs, ...moneyConfirmation(more.confirms) },
      more.by ?? CASEY,
      more.key,
    );
  }
  attests(
    more: Sending & {
      reference?: string;
      confirms?: boolean | number;
      confirmsMoney?: boolean | MoneyConfirmation;
    } = {},
  ): this {
    const { intentId = this.#intents, reference } = more;
    const confirmedReportCount = typeof more.confirms === "number" ? more.confirms : undefined;
    const confirmsReferenceAlreadyUsed =
      confirmedReportCount === undefined ? (more.confirms as boolean | undefined) : true;
    const money = moneyConfirmation(more.confirmsMoney);
    const confirms = { confirmsReferenceAlreadyUsed, confirmedReportCount, ...money };
    const command = { type: "intent_attest", intentId, reference, ...confirms } as const;
    return this.send(command, more.by ?? CASEY, more.key);
  }
  cancels(more: Sending = {}): this {
    return this.send({ type: "intent_cancel", intentId: more.intentId ?? this.#intents }, more.by ?? CASEY, more.key);
  }

  // The messages of order truth and the payment seam.

  order(change: Partial<OrderSnapshot> = {}): this {
    const order = { ...ORDER, ...change };
    if (order.status === "open") this.#shown = order;
    return this.send({ type: "order_put", order }, SETTLEMENT);
  }
  settles(transactionId = 9_001, intentId: number = this.#intents): this {
    return this.send({ type: "settlement_succeeded", intentId, transactionId }, SETTLEMENT);
  }
  refusesToSettle(
    code: SettlementRefusal = "order_changed",
    more: Sending & { attestationId?: string; earlier?: EarlierSale } = {},
  ): this {
    const { intentId = this.#intents, attestationId, earlier } = more;
    return this.send({ type: "settlement_refused", intentId, code, attestationId, earlier }, SETTLEMENT);
  }

  // The provider's messages.

  /** The provider service announces the station's config; null removes it. */
  uses(configId: number | null = PROVIDER.id, revision: number = this.station.provider.revision + 1): this {
    return this.send({ type: "provider_put", provider: { configId, revision } }, REGISTRY);
  }
  givesQr(more: Sending & { payload?: string; reference?: string } = {}): this {
    const { intentId = this.#intents, payload: qrPayload = QR, reference: providerReference = "PAY-1" } = more;
    return this.send({ type: "qr_ready", intentId, qrPayload, providerReference }, PROVIDER);
  }
  confirms(more: Sending & { reference?: string } = {}): this {
    const { intentId = this.#intents, reference: providerReference = "PAY-1" } = more;
    return this.send({ type: "provider_confirm", intentId, providerReference }, more.by ?? PROVIDER, more.key);
  }
  fails(reason: FailureReason, more: Sending = {}): this {
    return this.send({ type: "provider_failed", intentId: more.intentId ?? this.#intents, reason }, PROVIDER);
  }
  /** The provider asserts a payment that differs from the registered one. */
  differs(issue = "amount_mismatch", more: Sending & { issueId?: number } = {}): this {
    const { intentId = this.#intents, issueId = 1 } = more;
    return this.send({ type: "provider_money_differs", intentId, issue, issueId }, more.by ?? PROVIDER, more.key);
  }
  inquires(orderId: number = this.#shown.orderId): this {
    return this.send({ type: "order_inquire", orderId }, PROVIDER);
  }
  /** The host has reported an end to the providers service. */
  reportsEnd(intentId: number = this.#intents): this {
    return this.send({ type: "end_reported", intentId }, SYSTEM);
  }
  clears(intentId: number = this.#intents): this {
    return this.send({ type: "provider_cleared", intentId }, PROVIDER);
  }

  // The companion's messages.

  fetches(more: Sending = {}): this {
    const intentId = more.intentId ?? this.#intents;
    return this.send({ type: "intent_present", intentId }, more.by ?? COMPANION, more.key);
  }
  reports(
    outcome: ReportedOutcome,
    more: Sending & { reference?: string; code?: string; blocked?: BlockedReason } = {},
  ): this {
    const intentId = more.intentId ?? this.#intents;
    const { reference: providerReference = "", code: providerCode = "", blocked: blockedReason } = more;
    return this.send(
      { type: "intent_report", intentId, outcome, providerReference, providerCode, blockedReason },
      more.by ?? COMPANION,
      more.key,
    );
  }

  // The visible results.

  get station(): StationState {
    if (this.state === null) throw new Error("The station does not exist yet.");
    return this.state;
  }
  get reply(): StationReply | undefined {
    return this.#last?.reply;
  }
  get repeated(): boolean {
    return this.#last !== undefined && this.#last.state !== null && this.#last.repeated;
  }
  /** The types of the events of the last step, in order. */
  get happened(): readonly string[] {
    return this.#last === undefined || this.#last.state === null ? [] : this.#last.events.map((event) => event.type);
  }
  /** The newest intent, active or ended. */
  get intent(): PaymentIntent | undefined {
    return findIntent(this.station, this.#intents);
  }
  get intentId(): number {
    return this.#intents;
  }
  device(device: Actor = COMPANION) {
    return findDevice(this.station, device.id);
  }
  get display(): DisplayView {
    return displayView(this.station, this.atMs, true).view;
  }
}

/** A station with a live companion and a display, no open order and no lease. */
export function aCounter(): Scenario {
  return new Scenario()
    .describesStation()
    .describesDevice(COMPANION_DEVICE)
    .describesDevice(DISPLAY_DEVICE)
    .receivesHeartbeat(COMPANION)
    .waits(1_000);
}

/** The served counter with a provider. */
export function aQrCounter(): Scenario {
  return aServedCounter().uses();
}

/** The counter with a cashier and an open order. */
export function aServedCounter(): Scenario {
  return aCounter().leased().order().waits(1_000);
}

/** Its companion has fetched a collection. */
export const aFetchedCounter = (): Scenario => aServedCounter().picks("smart_pos").fetches();

/** The intents that leave an order unclear, each with its reason. */
export const reasonsOf = ({ station }: Scenario) =>
  station.unclearCollections.map(({ intentId, reason }) => [intentId, reason]);
