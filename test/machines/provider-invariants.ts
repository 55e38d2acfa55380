/** Invariants of every step about providers and unclear collections (machines/SPEC.md, M9, M20–M24, M26, M57 and M58). */
import { expect } from "vitest";
import { END_REASONS, isConfirmed, type PaymentIntent, PROVIDER_DECLINES } from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import type { StationEvent } from "../../machines/station/event.ts";
import type { StepInput } from "../../machines/station/outcome.ts";
import type { StationState, UnclearCollection } from "../../machines/station/state.ts";
import type { Step } from "../../machines/station/step.ts";
import { strongestUnclear } from "../../machines/station/unclear-collections.ts";
import { quickExpect } from "./quick-expect.ts";

export function checkProviders(before: StationState | null, input: StepInput, after: Step): void {
  for (const intent of intentsOf(after.state)) checkProvider(before, input, intent);
  checkUnclear(after.state);
  checkUnclearStay(before, input, after.state);
  checkUnreportedEnds(before, input, after);
  checkForgottenUnclear(before, after.state);
  checkSecondCollection(before, input, after);
}

export function intentsOf(state: StationState | null): readonly PaymentIntent[] {
  if (state === null) return [];
  return state.intent === null ? state.ended : [state.intent, ...state.ended];
}

function checkProvider(before: StationState | null, input: StepInput, intent: PaymentIntent): void {
  const { provider, status, route } = intent;
  quickExpect(provider !== null, "M20: a QR intent and no other has a provider").toBe(route === "dynamic_qr");
  if (provider === null) return;
  quickExpect(provider.qrPayload !== "", "M21: there is a payload exactly while it is presented").toBe(
    status === "presented",
  );
  if (status === "settling" || status === "succeeded" || status === "processing")
    quickExpect(isConfirmed(intent), "M20: the seam is asked after the provider's confirmation only").toBe(true);
  const was = intentsOf(before).find((other) => other.intentId === intent.intentId);
  const isRecorded = typeof input.recordedConfirmation === "object";
  if (isConfirmed(intent) && (was === undefined || !isConfirmed(was)) && !isRecorded) {
    quickExpect(input.command.type, "M20: only a confirmation confirms").toBe("provider_confirm");
    quickExpect(input.actor, "M20: by the config that was asked").toMatchObject({
      kind: "provider",
      id: provider.configId,
    });
  }
  if (was !== undefined && isConfirmed(was))
    quickExpect(provider.confirmedAtMs, "M20: a confirmation stays").toBe(was.provider?.confirmedAtMs);
  if (intent.endReason !== "") {
    expect(END_REASONS, "M21: an end by the provider has a name").toContain(intent.endReason);
    quickExpect(status, "M21").toBe("cancelled");
  }
}

function checkUnclear({ unclearCollections, knownOrders }: StationState): void {
  quickExpect(unclearCollections.length, "M9: unclearCollections").toBeLessThanOrEqual(STATE_LIMITS.unclearCollections);
  const distinct = new Set(unclearCollections.map(({ intentId, reason }) => `${intentId} ${reason}`));
  quickExpect(distinct.size, "M22: one entry per intent and reason").toBe(unclearCollections.length);
  const closed = knownOrders.filter((order) => order.status !== "open").map((order) => order.orderId);
  const isUnclearOrder = unclearCollections.map((unclear) => unclear.orderId);
  quickExpect(
    isUnclearOrder.filter((orderId) => closed.includes(orderId)),
    "M22: a paid or voided order is not unclear",
  ).toEqual([]);
}

/** An unclear collection leaves only by payment or void of its order, by the clearing of its intent, or by the bound. */
function checkUnclearStay(before: StationState | null, { command, recalled }: StepInput, state: StationState): void {
  const { unclearCollections, knownOrders } = state;
  const settledId = command.type === "settlement_succeeded" ? command.intentId : undefined;
  const settled = [...intentsOf(state), recalled].find((intent) => intent?.intentId === settledId);
  const isThere = ({ intentId, reason }: UnclearCollection): boolean =>
    unclearCollections.some((unclear) => unclear.intentId === intentId && unclear.reason === reason);
  const gone = (before?.unclearCollections ?? []).filter((unclear) => !isThere(unclear));
  const unexplained = gone.filter(({ orderId, intentId, reason }) => {
    const isClosed = knownOrders.some((known) => known.orderId === orderId && known.status !== "open");
    const isCleared = command.type === "provider_cleared" && command.intentId === intentId;
    const isAnswered =
      reason === "handoff_presented" && command.type === "intent_report" && command.intentId === intentId;
    // Lost evidence of the same collection is stronger than silence: the order stays unclear for that reason.
    const hasMore =
      reason === "handoff_presented" && unclearCollections.some((unclear) => unclear.intentId === intentId);
    const isPushedOut =
      unclearCollections.length === STATE_LIMITS.unclearCollections && orderId <= state.unclearForgottenThrough;
    const isPaid = orderId === settled?.orderId;
    return !isClosed && !isPaid && !isCleared && !isAnswered && !hasMore && !isPushedOut;
  });
  quickExpect(
    unexplained,
    "M22: an unclear collection leaves by payment, void, its clearing, a report or another reason after silence, or the bound",
  ).toEqual([]);
}

/** The end of an unpaid QR stays in `unreportedEnds` until the host has reported it to the providers service. */
function checkUnreportedEnds(before: StationState | null, { command }: StepInput, { state }: Step): void {
  const was = before?.unreportedEnds ?? [];
  const active = before?.intent ?? null;
  const hasEnded = active !== null && state.intent?.intentId !== active.intentId;
  const end = hasEnded ? state.ended.find((intent) => intent.intentId === active.intentId) : undefined;
  const isUnpaidQr = end !== undefined && end.provider !== null && end.status !== "succeeded";
  const all = isUnpaidQr ? [...was, end.intentId] : was;
  const reported = command.type === "end_reported" ? command.intentId : undefined;
  const left = all.slice(-STATE_LIMITS.unreportedEnds).filter((intentId) => intentId !== reported);
  quickExpect(state.unreportedEnds, "M26: the end of a QR stays unreported until `end_reported`").toEqual(left);
}

/** What the events have reported about the payment of an intent, including what the bounded state no longer has. */
interface Reports {
  byDevice: boolean;
  /** A companion has fetched it, and the station has accepted no report about it. */
  silent: boolean;
  byProvider: boolean;
  shown: boolean;
  confirmed: boolean;
  /** The seam refused the attestation of a card payment. */
  refused: boolean;
  /** The log had lost the evidence. */
  restored: boolean;
  ended: boolean;
}

const END_EVENTS: readonly string[] = ["intent_cancelled", "intent_expired", "provider_failed", "intent_overtaken"];
const MAY_HAVE_MOVED: readonly string[] = ["reported_success", "reported_unknown"];

/** Derives from all events of one station (M23), without the machine's state, whose money may have moved. */
export class MoneyWitness {
  readonly #reports = new Map<number, Reports>();
  /** Orders that the seam has settled although their intent had ended. They are paid; the station receives this later. */
  readonly #settledLate = new Set<number>();
  readonly #succeeded = new Set<number>();
  /** When true, the list has been full: a reason of an intent that has left the state may be displaced. */
  #wasFull = false;

  see({ state, events }: Step): void {
    for (const event of events) {
      if ("intentId" in event) this.#note(event, state);
      if (event.type === "collections_restored")
        for (const { intentId } of event.reasons) this.#reportsOf(intentId).restored = true;
    }
    for (const intent of state.ended) this.#check(intent, state);
    this.#checkLeft(state);
  }

  /** An intent that has left the state: its reason is listed exactly when its money may have moved. */
  #checkLeft(state: StationState): void {
    const { olderReasons } = state;
    const here = new Set(intentsOf(state).map(({ intentId }) => intentId));
    const present = olderReasons.filter(({ intentId }) => here.has(intentId));
    quickExpect(present, "M60: of intents that have left only").toEqual([]);
    const listed = new Set(olderReasons.map(({ intentId }) => intentId));
    quickExpect(listed.size, "M60: one reason for each intent").toBe(olderReasons.length);
    this.#wasFull ||= olderReasons.length === STATE_LIMITS.olderReasons;
    if (this.#wasFull) return;
    for (const [intentId, reports] of this.#reports) {
      if (here.has(intentId) || this.#succeeded.has(intentId) || !reports.ended) continue;
      quickExpect(listed.has(intentId), "M60: a reason stays when its intent leaves the state").toBe(
        mayHaveMoved(reports),
      );
    }
  }

  #reportsOf(intentId: number): Reports {
    const reports = this.#reports.get(intentId) ?? {
      byDevice: false,
      silent: false,
      byProvider: false,
      shown: false,
      confirmed: false,
      refused: false,
      restored: false,
      ended: false,
    };
    this.#reports.set(intentId, reports);
    return reports;
  }

  #note(event: Extract<StationEvent, { readonly intentId: number }>, state: StationState): void {
    const { intentId } = event;
    const reports = this.#reportsOf(intentId);
    if (event.type === "outcome_reported" || event.type === "late_evidence_kept") {
      reports.byDevice ||= MAY_HAVE_MOVED.includes(event.outcome);
      // A report of a blocked device removes no reason.
      if (event.type === "outcome_reported" || event.blockedReason === "") reports.silent = false;
    }
    if (event.type === "intent_presented") reports.silent = true;
    const route = intentsOf(state).find((intent) => intent.intentId === intentId)?.route;
    if (event.type === "settlement_refused") reports.refused ||= route !== "cash" && route !== "dynamic_qr";
    if (event.type === "money_differs" || event.type === "late_money_kept") reports.byProvider = true;
    if (event.type === "qr_presented") reports.shown = true;
    if (event.type === "provider_confirmed") reports.confirmed = true;
    if (event.type === "unclear_resolved") {
      Object.assign(reports, { silent: false, byProvider: false, restored: false });
      // While a QR is shown, the guest can still pay it, also after a report of its provider.
      if (reports.ended) Object.assign(reports, { shown: false, confirmed: false });
    }
    if (END_EVENTS.includes(event.type)) reports.ended = true;
    // The provider's decline means that the shown QR was not paid.
    if (event.type === "provider_failed" && PROVIDER_DECLINES.some((decline) => decline === event.reason))
      reports.shown = false;
    if (event.type === "intent_succeeded") this.#succeeded.add(intentId);
    if (event.type === "settlement_conflict")
      for (const intent of intentsOf(state)) if (intent.intentId === intentId) this.#settledLate.add(intent.orderId);
  }

  #check(
    { intentId, orderId, status, reasonSinceEnd }: PaymentIntent,
    { knownOrders, unclearCollections, unclearForgottenThrough }: StationState,
  ): void {
    const reports = this.#reports.get(intentId);
    if (reports === undefined || status === "succeeded") return;
    // This holds in any state of the order: one that another collection has paid may have been paid twice.
    quickExpect(reasonSinceEnd !== "", "M58: an intent that ended unpaid keeps that its money may have moved").toBe(
      mayHaveMoved(reports),
    );
    const order = knownOrders.find((known) => known.orderId === orderId);
    const isPaid = order === undefined || order.status !== "open" || this.#settledLate.has(orderId);
    if (isPaid || orderId <= unclearForgottenThrough) return;
    const isUnclear = unclearCollections.some((unclear) => unclear.intentId === intentId);
    quickExpect(isUnclear, "M23: an intent that ended unpaid is unclear exactly when money may have moved").toBe(
      mayHaveMoved(reports),
    );
  }
}

function mayHaveMoved({ confirmed, byDevice, silent, byProvider, shown, refused, restored }: Reports): boolean {
  return confirmed || byDevice || silent || byProvider || shown || refused || restored;
}

/** When an unclear collection leaves the state because of the bound, its order still needs a confirmation. */
function checkForgottenUnclear(
  before: StationState | null,
  { unclearCollections, unclearForgottenThrough }: StationState,
): void {
  quickExpect(unclearForgottenThrough, "M22: forgotten orders stay unclear").toBeGreaterThanOrEqual(
    before?.unclearForgottenThrough ?? 0,
  );
  if (before === null || unclearCollections.length < STATE_LIMITS.unclearCollections) return;
  const left = new Set(unclearCollections.map((unclear) => unclear.intentId));
  const pushedOut = before.unclearCollections
    .filter((unclear) => !left.has(unclear.intentId))
    .map((unclear) => unclear.orderId);
  for (const orderId of pushedOut)
    quickExpect(
      unclearForgottenThrough,
      "M22: the order of an unclear collection that was pushed out stays unclear",
    ).toBeGreaterThanOrEqual(orderId);
}

/**
 * Derives from all events of one station, without the machine's state, which earlier collections of the current order have a
 * new reason (M57). New is a reason since the current collection was created or last confirmed.
 */
export class NewsWitness {
  readonly #orders = new Map<number, number>();
  /** The reports about each ended intent, and whether each is new for the active collection. */
  readonly #reports = new Map<string, { readonly intentId: number; isNew: boolean }>();
  #active: { readonly intentId: number; readonly orderId: number } | undefined;
  readonly #ended = new Set<number>();

  see({ events }: Step): void {
    const wasConfirmed = events.some(({ type }) => type === "second_collection_confirmed");
    for (const event of events) if ("intentId" in event) this.#note(event, wasConfirmed);
  }

  #note(event: Extract<StationEvent, { readonly intentId: number }>, wasConfirmed: boolean): void {
    const { intentId } = event;
    if (event.type === "intent_created") {
      this.#orders.set(intentId, event.orderId);
      this.#active = { intentId, orderId: event.orderId };
      this.#markAllKnown();
    }
    if (END_EVENTS.includes(event.type)) this.#ended.add(intentId);
    const kind = evidenceOf(event);
    const isOfOrder = this.#orders.get(intentId) === this.#active?.orderId && intentId !== this.#active?.intentId;
    const key = `${intentId} ${kind}`;
    const isNamed = kind === "late_money" && [...this.#reports.keys()].some((known) => known.startsWith(key));
    if (kind !== undefined && !isNamed && !this.#reports.has(key))
      this.#reports.set(key, { intentId, isNew: isOfOrder });
    // While the intent is active, its provider withdraws only the differing payment.
    if (event.type === "unclear_resolved" && this.#ended.has(intentId))
      for (const [finding, { intentId: cleared }] of this.#reports)
        if (cleared === intentId) this.#reports.delete(finding);
    if (event.type !== "settlement_started") return;
    const news = [...this.#reports.values()].filter(({ isNew }) => isNew);
    if (!wasConfirmed) quickExpect(news, "M57: what is new is confirmed before a cashier settles").toEqual([]);
    this.#markAllKnown();
  }

  #markAllKnown(): void {
    for (const finding of this.#reports.values()) finding.isNew = false;
  }
}

/**
 * The evidence that a collection's money may have moved: reports after its end, and the payments that were
 * reported or confirmed before it, which are not new afterwards. Each further payment is new.
 */
function evidenceOf(event: StationEvent): string | undefined {
  if (event.type === "provider_confirmed") return `late_money ${event.providerReference}`;
  if (event.type === "outcome_reported" && event.outcome === "reported_success" && event.providerReference !== "")
    return `reported_success ${event.providerReference}`;
  const isLate = "status" in event && (event.status === "cancelled" || event.status === "expired");
  if (!isLate) return undefined;
  if (event.type === "late_evidence_kept" && event.outcome === "reported_success")
    return `reported_success ${event.providerReference}`;
  if (event.type === "late_evidence_kept") return event.outcome === "reported_unknown" ? event.outcome : undefined;
  if (event.type === "late_money_kept") return `late_money ${event.providerReference}`;
  // The event has no issue id; late-payments.test.ts tests that another issue makes the station ask again.
  return event.type === "money_differs" ? event.issue : undefined;
}

function checkSecondCollection(before: StationState | null, { command }: StepInput, after: Step): void {
  const wasConfirmed = after.events.some(({ type }) => type === "second_collection_confirmed");
  if (wasConfirmed)
    quickExpect(command, "M24: with the cashier's confirmation only").toMatchObject({
      confirmsMoneyMayHaveMoved: true,
    });
  if (command.type === "intent_create" || command.type === "intent_attest") {
    const intentId = after.state?.intent?.intentId;
    const confirmed = after.state?.unclearCollections.filter(
      (unclear) =>
        unclear.confirmedFor === intentId &&
        unclear.confirmedFor !== undefined &&
        !before?.unclearCollections.some(
          (was) => was.intentId === unclear.intentId && was.reason === unclear.reason && was.confirmedFor === intentId,
        ),
    );
    for (const { reasonNumber } of confirmed ?? [])
      quickExpect(reasonNumber, "M24: no reason that is newer than the question").toBeLessThanOrEqual(
        command.confirmedReasonNumber ?? reasonNumber,
      );
  }
  if (command.type !== "intent_create" || after.repeated || !after.reply.ok) return;
  // The state after the step counts, because a deadline may have been due just before the creation.
  const { orderId } = command.order;
  const ofOrder = after.state.unclearCollections.filter((unclear) => unclear.orderId === orderId);
  const earlier = strongestUnclear(ofOrder);
  const isForgotten = earlier === undefined && orderId <= after.state.unclearForgottenThrough;
  const confirmed = after.events.find((event) => event.type === "second_collection_confirmed");
  quickExpect(confirmed?.earlierIntentId, "M24: the unclear collection is named in the audit log").toBe(
    isForgotten ? null : earlier?.intentId,
  );
  quickExpect(before?.intent?.status === "settling", "M3").toBe(false);
}
