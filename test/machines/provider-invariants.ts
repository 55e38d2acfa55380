/** What holds of every single step about providers and about money in doubt (machines/SPEC.md, M9 and M20–M24). */
import { expect } from "vitest";
import { END_REASONS, isConfirmed, type PaymentIntent, PROVIDER_DECLINES } from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import type { StepInput } from "../../machines/station/outcome.ts";
import type { StationState } from "../../machines/station/state.ts";
import type { Step } from "../../machines/station/step.ts";

export function checkProviders(before: StationState | null, input: StepInput, after: Step): void {
  for (const intent of intentsOf(after.state)) checkProvider(before, input, intent);
  checkDoubts(after.state);
  checkUnpaidEnd(before, after);
  checkSecondCollection(before, input, after);
}

function intentsOf(state: StationState | null): readonly PaymentIntent[] {
  if (state === null) return [];
  return state.intent === null ? state.ended : [state.intent, ...state.ended];
}

function checkProvider(before: StationState | null, input: StepInput, intent: PaymentIntent): void {
  const { provider, status, route } = intent;
  expect(provider !== null, "M20: a QR intent and no other has a provider").toBe(route === "dynamic_qr");
  if (provider === null) return;
  expect(provider.qrPayload !== "", "M21: there is a payload exactly while it is presented").toBe(
    status === "presented",
  );
  if (status === "settling" || status === "succeeded" || status === "processing")
    expect(isConfirmed(intent), "M20: the seam is asked after the provider's confirmation only").toBe(true);
  const was = intentsOf(before).find((other) => other.intentId === intent.intentId);
  if (isConfirmed(intent) && (was === undefined || !isConfirmed(was))) {
    expect(input.command.type, "M20: only a confirmation confirms").toBe("provider_confirm");
    expect(input.actor, "M20: by the config that was asked").toMatchObject({ kind: "provider", id: provider.configId });
  }
  if (was !== undefined && isConfirmed(was))
    expect(provider.confirmedAtMs, "M20: a confirmation stays").toBe(was.provider?.confirmedAtMs);
  if (intent.endReason !== "") {
    expect(END_REASONS, "M21: an end by the provider has a name").toContain(intent.endReason);
    expect(status, "M21").toBe("cancelled");
  }
}

function checkDoubts({ doubts, knownOrders }: StationState): void {
  expect(doubts.length, "M9: doubts").toBeLessThanOrEqual(STATE_LIMITS.doubts);
  expect(new Set(doubts.map((doubt) => doubt.intentId)).size, "M22: one doubt per intent").toBe(doubts.length);
  const closed = knownOrders.filter((order) => order.status !== "open").map((order) => order.orderId);
  const inDoubt = doubts.map((doubt) => doubt.orderId);
  expect(
    inDoubt.filter((orderId) => closed.includes(orderId)),
    "M22: a paid or voided order is in no doubt",
  ).toEqual([]);
}

/** Told by the intent as it was before its end, independently of how the machine tells it. */
function checkUnpaidEnd(before: StationState | null, { state, events }: Step): void {
  const active = before?.intent ?? null;
  const ended = state.ended[0];
  if (active === null || ended === undefined || ended.intentId !== active.intentId) return;
  const mayHaveMoved =
    (active.provider?.confirmedAtMs ?? null) !== null ||
    (active.status === "presented" &&
      active.route === "dynamic_qr" &&
      !PROVIDER_DECLINES.some((decline) => decline === ended.endReason)) ||
    active.reports.some(({ outcome }) => outcome === "reported_success" || outcome === "reported_unknown");
  const order = state.knownOrders.find((known) => known.orderId === active.orderId);
  // A deadline was due, and the command that found it said more about the money.
  const saysMore = ["doubt_cleared", "late_evidence_kept", "late_money_kept", "settlement_conflict"];
  if (events.some((event) => saysMore.includes(event.type))) return;
  if (ended.status === "succeeded" || (order !== undefined && order.status !== "open")) return;
  const isInDoubt = state.doubts.some((doubt) => doubt.intentId === active.intentId);
  expect(isInDoubt, "M23: an intent that ended unpaid is in doubt exactly when money may have moved").toBe(
    mayHaveMoved,
  );
}

function checkSecondCollection(before: StationState | null, { command }: StepInput, after: Step): void {
  if (command.type !== "intent_create" || after.repeated || !after.reply.ok) return;
  // In doubt at the end of the step: a deadline that was due just before the creation counts.
  const earlier = after.state.doubts.findLast((doubt) => doubt.orderId === command.order.orderId);
  const confirmed = after.events.find((event) => event.type === "second_collection_confirmed");
  expect(confirmed?.earlierIntentId, "M24: the collection that is in doubt is named in the trail").toBe(
    earlier?.intentId,
  );
  if (earlier !== undefined) expect(command.confirmsMoneyMayHaveMoved, "M24: with the cashier's word only").toBe(true);
  expect(before?.intent?.status === "settling", "M3").toBe(false);
}
