/**
 * Invariants of every single step, after any earlier steps (machines/SPEC.md, M1–M13, M19–M24, M26, M47, M54 and M60). The scenario language checks them
 * after each sentence, and the property tests after each random command. So every test of the station checks them.
 */
import { expect } from "vitest";
import { AMOUNT_PATTERN } from "../../machines/currency.ts";
import { isEnded, ORDER_OBSTACLES, type PaymentIntent } from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import type { StationCommandType } from "../../machines/station/command.ts";
import { type Commit, decodeCommit, encodeCommit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import { needsConfirmationCheck, nextDeadlineMs } from "../../machines/station/deadlines.ts";
import type { StepInput } from "../../machines/station/outcome.ts";
import type { StationState } from "../../machines/station/state.ts";
import { type Step, step } from "../../machines/station/step.ts";
import { assignedIntent, assignmentView } from "../../machines/views/assignment.ts";
import { deviceSnapshotView } from "../../machines/views/device-snapshot.ts";
import { displayView, rendersQrOn } from "../../machines/views/display.ts";
import { checkProviders, intentsOf } from "./provider-invariants.ts";
import { quickExpect } from "./quick-expect.ts";

/** Freezes a value and all values in it: a step that writes to its input throws (M1). */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

export function checkStep(before: StationState | null, input: StepInput, after: Step): void {
  quickExpect(step(before, input), "M1: the same input gives the same step").toEqual(after);
  if (after.events.length === 0) quickExpect(after.state, "M2: a step without events changes nothing").toEqual(before);
  checkBounds(after.state);
  checkMemory(before, after.state);
  checkCollections(before, input, after);
  checkMoney(before, after.state);
  checkProviders(before, input, after);
  checkRepetition(input, after);
  checkLease(input, after);
  checkForgottenReply(input, after);
  // A repetition changes nothing. After it, an overdue deadline waits for the next command or tick.
  if (!after.repeated) checkDeadline(input, after.state);
  checkCommit(input, after);
  checkViews(input, after.state);
}

function checkBounds(state: StationState): void {
  quickExpect(state.devices.length, "M9: devices").toBeLessThanOrEqual(STATE_LIMITS.devices);
  quickExpect(state.revokedDevices.length, "M9: revoked devices").toBeLessThanOrEqual(STATE_LIMITS.revokedDevices);
  quickExpect(state.waitingOrders.length, "M9: waiting orders").toBeLessThanOrEqual(STATE_LIMITS.waitingOrders);
  const open = [state.order, ...state.waitingOrders].flatMap((order) => order?.orderId ?? []);
  quickExpect(new Set(open).size, "an open order is shown or waits").toBe(open.length);
  if (state.order === null) quickExpect(state.waitingOrders, "nothing waits behind an empty display").toEqual([]);
  quickExpect(state.knownOrders.length, "M9: known orders").toBeLessThanOrEqual(
    STATE_LIMITS.knownOrders + STATE_LIMITS.endedIntents + 1,
  );
  quickExpect(state.ended.length, "M9: ended intents").toBeLessThanOrEqual(STATE_LIMITS.endedIntents);
  quickExpect(state.replies.length, "M9: replies").toBeLessThanOrEqual(STATE_LIMITS.replies);
  quickExpect(state.intent?.reports.length ?? 0, "M9: reports").toBeLessThanOrEqual(STATE_LIMITS.activeReports);
  quickExpect(state.unreportedEnds.length, "M9: unreported ends").toBeLessThanOrEqual(STATE_LIMITS.unreportedEnds);
  quickExpect(state.endedSessions.length, "M9: ended sessions").toBeLessThanOrEqual(STATE_LIMITS.endedSessions);
  quickExpect(state.lateEvidence.length, "M9: late evidence").toBeLessThanOrEqual(STATE_LIMITS.lateEvidenceIntents);
  quickExpect(state.olderReasons.length, "M9: older reasons").toBeLessThanOrEqual(STATE_LIMITS.olderReasons);
  for (const { asserted, unknown, other } of state.lateEvidence)
    quickExpect(Math.max(asserted.length, unknown.length, other.length), "M9").toBeLessThanOrEqual(
      STATE_LIMITS.lateEvidencePerIntent,
    );
  for (const intent of state.ended) {
    quickExpect(intent.reports.length, "M9: reports of an ended intent").toBeLessThanOrEqual(STATE_LIMITS.endedReports);
  }
  checkText(state);
  const ids = state.devices.map((device) => device.deviceId);
  quickExpect(ids, "devices are sorted and unique").toEqual([...new Set(ids)].toSorted((a, b) => a - b));
}

/** The texts of a device have a bound, except the newest of each list and the report that an attestation inherits. */
function checkText({ intent, ended, replies }: StationState): void {
  const reports = intent?.reports ?? [];
  const inherited = reports.findLast((report) => report.providerReference !== "");
  const older = {
    reports: reports.slice(0, -1).filter((report) => report !== inherited),
    ended: ended.slice(1).flatMap((other) => other.reports),
    replies: replies.slice(0, -1).flatMap(({ reply }) => (reply.ok && reply.type === "report" ? [reply.report] : [])),
  };
  for (const [what, kept] of Object.entries(older)) {
    const text = kept.reduce(
      (sum, { providerReference, providerCode }) => sum + providerReference.length + providerCode.length,
      0,
    );
    quickExpect(text, `M9: text of older ${what}`).toBeLessThanOrEqual(STATE_LIMITS.olderReportText);
  }
}

/** Both lists drop the oldest entry first; the replies drop one for each new reply. */
function checkMemory(before: StationState | null, { replies, ended }: StationState): void {
  if (before === null) return;
  const kept = before.replies.slice(-(STATE_LIMITS.replies - 1));
  if (replies.length !== before.replies.length || replies.at(-1)?.commandId !== before.replies.at(-1)?.commandId) {
    quickExpect(replies.slice(0, -1), "M19: a commit keeps at most one reply").toEqual(kept);
  }
  const left = before.ended.slice(0, STATE_LIMITS.endedIntents - 1).map((intent) => intent.intentId);
  if (ended[0]?.intentId !== before.ended[0]?.intentId) {
    const others = ended.slice(1).map((intent) => intent.intentId);
    quickExpect(others, "M19: a commit ends at most one intent").toEqual(left.slice(0, others.length));
  }
}

function checkCollections(before: StationState | null, input: StepInput, after: Step): void {
  const { state, events } = after;
  if (state.intent !== null)
    quickExpect(isEnded(state.intent.status), "M3: the active intent has not ended").toBe(false);
  for (const intent of state.ended) quickExpect(isEnded(intent.status), "M3: an ended intent has ended").toBe(true);
  const all = [state.intent, ...state.ended].flatMap((intent) => intent?.intentId ?? []);
  quickExpect(new Set(all).size, "M3: an intent is in one place").toBe(all.length);

  for (const intent of state.ended) {
    const was = before?.ended.find((other) => other.intentId === intent.intentId);
    if (was !== undefined) checkEnded(intent, was, input);
  }
  const active = before?.intent ?? null;
  if (active !== null && state.intent?.intentId !== active.intentId) {
    const ended = state.ended.find((intent) => intent.intentId === active.intentId);
    quickExpect(ended, "M4: an active intent goes nowhere but to the ended ones").toBeDefined();
    if (active.status === "settling" && input.command.type !== "settlement_refused")
      quickExpect(ended?.status, "M5: a settlement under way is neither cancelled nor expired").toBe("succeeded");
    if (ended?.status === "succeeded") quickExpect(input.command.type, "M6").toBe("settlement_succeeded");
    if (ended?.status === "cancelled") {
      expect(CANCELLERS[endedBy(ended.endReason)], "M6").toContain(input.command.type);
    }
    if (ended?.status === "expired")
      quickExpect(input.atMs, "M6: expired at its deadline").toBeGreaterThanOrEqual(ended.expiresAtMs);
  }
  if (input.command.type === "intent_report") {
    const { intentId } = input.command;
    const ends = events.filter(
      (event) =>
        (event.type === "intent_succeeded" || event.type === "intent_cancelled") && event.intentId === intentId,
    );
    quickExpect(ends, "M7: a report ends nothing").toEqual([]);
  }
}

/**
 * An ended intent stays as it is, except that late evidence, or a restore of what the log has lost, changes the reason why its
 * money may have moved.
 */
function checkEnded(intent: PaymentIntent, was: PaymentIntent, { command }: StepInput): void {
  const { reasonSinceEnd } = intent;
  quickExpect(intent, "M4: an ended intent never changes but for its reason").toEqual({ ...was, reasonSinceEnd });
  if (reasonSinceEnd === was.reasonSinceEnd) return;
  expect(was.status, "M4: only an unpaid intent's reason changes").not.toBe("succeeded");
  if (command.type === "station_put") {
    const restored = command.lost?.reasons.find((lost) => lost.intentId === intent.intentId)?.reason;
    return quickExpect(reasonSinceEnd, "M4: the restored reason is the lost one").toBe(restored);
  }
  quickExpect(command, "M4: only evidence about the intent changes its reason").toMatchObject({
    intentId: intent.intentId,
  });
  const byProvider = ["provider_confirm", "provider_cleared", "provider_money_differs"];
  expect(
    intent.route === "dynamic_qr" ? byProvider : ["intent_report"],
    "M4: the provider changes a QR intent's reason, a report any other",
  ).toContain(command.type);
  if (reasonSinceEnd === "" && intent.route !== "dynamic_qr")
    quickExpect(was.reasonSinceEnd, "M4: a report removes no reason but `handoff_presented`").toBe("handoff_presented");
}

/** Who cancels an intent. The end of an order comes from order truth or from the seam. */
const CANCELLERS = {
  cashier: ["intent_cancel"],
  provider: ["provider_failed"],
  order: ["order_put", "settlement_succeeded", "settlement_refused"],
} as const satisfies Record<string, readonly StationCommandType[]>;

function endedBy(endReason: PaymentIntent["endReason"]): keyof typeof CANCELLERS {
  if (endReason === "") return "cashier";
  return ORDER_OBSTACLES.some((obstacle) => obstacle === endReason) ? "order" : "provider";
}

const MONEY_FIELDS = [
  "intentId",
  "orderId",
  "orderRevision",
  "orderDisplayNumber",
  "amountMinor",
  "currency",
  "expiresAtMs",
] as const;

function checkMoney(before: StationState | null, after: StationState): void {
  const known = new Map(intentsOf(before).map((intent) => [intent.intentId, intent]));
  for (const intent of intentsOf(after)) {
    const was = known.get(intent.intentId);
    if (was === undefined) continue;
    for (const field of MONEY_FIELDS) quickExpect(intent[field], `M8: ${field} never changes`).toBe(was[field]);
  }
}

function checkRepetition(input: StepInput, after: Step): void {
  const stored = after.state.replies.findLast((entry) => entry.commandId === input.commandId);
  if (stored === undefined) return;
  const again = step(after.state, { ...input, atMs: input.atMs + 3_600_000 });
  const nothing = { state: after.state, events: [], repeated: true };
  quickExpect(again, "M10: a repetition does nothing").toMatchObject(nothing);
  // The answer to these commands has the current lease, and an hour later every lease has ended.
  if (LEASE_COMMANDS.has(input.command.type)) return;
  quickExpect(again.reply, "M10: a repetition is answered alike").toEqual(after.reply);
  if (!after.repeated) quickExpect(stored.reply, "M10: the stored reply is the given one").toEqual(after.reply);
}

/** Commands whose repetition is answered with the current lease. */
export const LEASE_COMMANDS: ReadonlySet<string> = new Set(["lease_acquire", "lease_release", "lease_break"]);

function checkLease({ command, actor, atMs }: StepInput, { reply, state }: Step): void {
  if (command.type !== "lease_acquire" || !reply.ok) return;
  quickExpect(reply, "M54: the lease is the caller's").toMatchObject({ lease: { cashierId: actor.id } });
  quickExpect(state.lease?.expiresAtMs, "M54: the lease has not ended").toBeGreaterThan(atMs);
}

/** Commands whose answer the intent itself stores, for the time after the reply has left the state. */
const KNOWN_BY_INTENT: readonly StationCommandType[] = ["intent_create", "intent_cancel", "intent_report"];

function checkForgottenReply(input: StepInput, after: Step): void {
  if (after.events.length === 0 || !after.reply.ok || !KNOWN_BY_INTENT.includes(input.command.type)) return;
  const again = step({ ...after.state, replies: [] }, input);
  quickExpect([again.reply, "events" in again && again.events], "M47: a repetition is known by its intent").toEqual([
    after.reply,
    [],
  ]);
}

function checkDeadline(input: StepInput, state: StationState): void {
  const deadlineMs = nextDeadlineMs(state);
  // Only a QR whose confirmation could not be checked stays active after its deadline.
  if (input.recordedConfirmation === "unknown" && needsConfirmationCheck(state, input.atMs)) return;
  if (deadlineMs !== null) quickExpect(deadlineMs, "M11: no deadline is overdue").toBeGreaterThan(input.atMs);
}

function checkCommit(input: StepInput, after: Step): void {
  const { commandId, actor, atMs } = input;
  const { events, reply, state } = after;
  const commit: Commit = { machineVersion: MACHINE_VERSION, version: 1, atMs, commandId, actor, events, reply, state };
  quickExpect(decodeCommit(encodeCommit(commit)), "M12: a commit survives its bytes").toEqual(commit);
}

function checkViews(input: StepInput, state: StationState): void {
  for (const nowMs of [input.atMs, input.atMs + 5_000, input.atMs + 3_600_000]) {
    for (const rendersQr of [true, false]) {
      const { view, validUntilMs } = displayView(state, nowMs, rendersQr);
      quickExpect(view.amount, "M13: the amount fits the contract's pattern").toMatch(AMOUNT_PATTERN);
      if (validUntilMs !== null) quickExpect(validUntilMs, "M13: a view is valid now").toBeGreaterThan(nowMs);
      quickExpect(view.qr_payload !== "", "M13: a payload is shown in the state qr only").toBe(view.state === "qr");
      if (!rendersQr) expect(view.state, "M13: a display that renders none never shows one").not.toBe("qr");
    }
    for (const device of state.devices) {
      const { deviceId } = device;
      if (rendersQrOn(state, device, input.switches)) expect(device.capabilities).toContain("qr_dynamic_present");
      const intent = assignedIntent(state, deviceId, nowMs);
      if (intent !== null) quickExpect(assignmentView(intent).amount, "M13").toMatch(AMOUNT_PATTERN);
      quickExpect(deviceSnapshotView(state, deviceId, input.switches), "M13").toBeDefined();
    }
  }
}
