/** What the state of a station shows about an order: why the payment seam would refuse it, and why money may have moved. */
import { expect, it } from "vitest";
import { type OrderKnowledge, orderObstacle, type StationState } from "../../machines/station/state.ts";
import { unclearReason } from "../../machines/station/unclear-collections.ts";
import { aServedCounter, ORDER } from "./scenario.ts";

const { orderId, amountMinor, currency } = ORDER;
const SHOWN = { ...ORDER, shownAtMs: 0 };
const NOTHING: OrderKnowledge = { order: null, waitingOrders: [], knownOrders: [] };
const known = (status: "paid" | "voided"): OrderKnowledge => ({
  ...NOTHING,
  order: { ...SHOWN, revision: 3 },
  knownOrders: [{ orderId, status, revision: 3 }],
});
const intent = { orderId, orderRevision: 1, amountMinor, currency };

it.each<[what: string, knowledge: OrderKnowledge, obstacle: string | undefined]>([
  ["unknown", NOTHING, undefined],
  ["paid", known("paid"), "order_already_paid"],
  ["voided", known("voided"), "order_voided"],
  ["open with another amount", { ...NOTHING, order: { ...SHOWN, amountMinor: "1", revision: 2 } }, "order_changed"],
  ["open in another currency", { ...NOTHING, order: { ...SHOWN, currency: "BRL", revision: 2 } }, "order_changed"],
  ["open with the same amount", { ...NOTHING, order: { ...SHOWN, revision: 2 } }, undefined],
  [
    "open with another amount at an earlier revision",
    { ...NOTHING, order: { ...SHOWN, amountMinor: "1", revision: 1 } },
    undefined,
  ],
  [
    "waiting with another amount",
    { ...NOTHING, waitingOrders: [{ ...SHOWN, amountMinor: "1", revision: 2 }] },
    "order_changed",
  ],
  [
    "not the open one, which has another amount",
    { ...NOTHING, order: { ...SHOWN, orderId: 999, amountMinor: "1", revision: 2 } },
    undefined,
  ],
])("the obstacle of an order that is %s", (_, knowledge, obstacle) => {
  expect(orderObstacle(knowledge, intent)).toBe(obstacle);
});

it("a collection that ended unpaid: its reason is the strongest of the known ones", () => {
  const [ended] = aServedCounter().picks("cash").cancels().station.ended;
  if (ended === undefined) throw new Error("The station has no ended collection.");
  const { intentId } = ended;
  const reasonOf = (station: Partial<Pick<StationState, "unclearCollections" | "olderReasons">>): string =>
    unclearReason(ended, { unclearCollections: [], olderReasons: [], ...station });
  const silent = { orderId, intentId, reason: "handoff_presented", reasonNumber: 1 } as const;
  const reported = { orderId, intentId, reason: "success_reported", reasonNumber: 1 } as const;
  const another = { orderId, intentId: intentId + 1, reason: "success_reported", reasonNumber: 1 } as const;
  expect(reasonOf({})).toBe("");
  expect(reasonOf({ unclearCollections: [another], olderReasons: [another] })).toBe("");
  expect(reasonOf({ unclearCollections: [silent] })).toBe("handoff_presented");
  expect(reasonOf({ olderReasons: [silent] })).toBe("handoff_presented");
  expect(reasonOf({ unclearCollections: [reported], olderReasons: [silent] })).toBe("success_reported");
  expect(reasonOf({ unclearCollections: [silent], olderReasons: [reported] })).toBe("success_reported");
});
