/** How later events change the reason of an ended intent that has left the state of its station. */
import { describe, expect, it } from "vitest";
import type { UnclearReason } from "../../machines/payment-intent.ts";
import type { StationEvent } from "../../machines/station/event.ts";
import { leastNeeded, withLaterEvents } from "../../machines/station/reasons.ts";
import { aQrCounter, aServedCounter } from "./scenario.ts";

const EVENTS = {
  success: { type: "late_evidence_kept", outcome: "reported_success", blockedReason: "" },
  unknown: { type: "late_evidence_kept", outcome: "reported_unknown", blockedReason: "" },
  decline: { type: "late_evidence_kept", outcome: "reported_declined", blockedReason: "" },
  "decline of a blocked device": {
    type: "late_evidence_kept",
    outcome: "reported_declined",
    blockedReason: "device_frozen",
  },
  money: { type: "late_money_kept" },
  "other money": { type: "money_differs", issue: "amount_mismatch" },
  "late money": { type: "money_differs", issue: "late_money" },
  "refused money": { type: "money_differs", issue: "settlement_refused" },
  cleared: { type: "unclear_resolved" },
} as const;
type Name = keyof typeof EVENTS;
type Row = readonly [before: UnclearReason | "", events: readonly Name[], after: UnclearReason | ""];

const ROWS: readonly Row[] = [
  ["handoff_presented", [], "handoff_presented"],
  ["handoff_presented", ["success"], "late_success"],
  ["handoff_presented", ["unknown", "success", "unknown", "decline", "cleared"], "late_success"],
  ["handoff_presented", ["decline of a blocked device"], "handoff_presented"],
  ["handoff_presented", ["decline", "cleared"], ""],
  ["", ["decline", "success"], "late_success"],
  ["qr_presented", ["money"], "late_money"],
  ["qr_presented", ["other money", "money"], "money_differs"],
  ["qr_presented", ["late money"], "late_money"],
  ["qr_presented", ["refused money"], "provider_confirmed"],
  ["provider_confirmed", ["other money", "cleared"], ""],
  ["late_money", ["cleared", "money"], "late_money"],
];

describe("the reason of an ended intent after later events", () => {
  it.each(ROWS)("the reason '%s', then the events %j: the reason '%s'", (reasonSinceEnd, names, after) => {
    const { intent } = aServedCounter().picks("smart_pos").cancels();
    if (intent === undefined) throw new Error("There is no intent.");
    const events = names.map((name) => EVENTS[name] as StationEvent);
    expect(withLaterEvents({ ...intent, reasonSinceEnd }, events).reasonSinceEnd).toBe(after);
  });

  it("a paid intent: it has no reason", () => {
    const { intent } = aQrCounter().picks("dynamic_qr").givesQr().confirms().settles();
    if (intent === undefined) throw new Error("There is no intent.");
    expect(withLaterEvents(intent, [EVENTS.money as StationEvent])).toEqual(intent);
  });
});

describe("the entry that a full list drops", () => {
  const entries = [
    { id: 1, reason: "late_money" },
    { id: 2, reason: "qr_presented" },
    { id: 3, reason: "outcome_unknown" },
    { id: 4, reason: "money_differs" },
  ] as const;
  it.each([
    ["no entry is needed: the weakest one, and the oldest of equal ones", [], 2],
    ["the weakest entries are needed: the weakest of the others", [2, 3], 1],
    ["all entries but the strongest are needed: the strongest", [1, 2, 3], 4],
    ["all entries are needed: the weakest", [1, 2, 3, 4], 2],
  ] as const)("%s", (_what, needed, left) => {
    const isNeeded = ({ id }: { readonly id: number }): boolean => needed.some((other) => other === id);
    expect(leastNeeded(entries, isNeeded)?.id).toBe(left);
  });
});
