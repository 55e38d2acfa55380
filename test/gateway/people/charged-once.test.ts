/** A companion reports a success late: the cashier must confirm before the guest is charged again. */

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { intentsSchema } from "../../../gateway/api/cashier/intents.ts";
import type { orderSchema } from "../../../gateway/api/cashier/orders.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { enrollDevice, enrollSandboxDevice, newCode, type TestDevice, untilOffered } from "../../support/devices.ts";
import { HANGS } from "../../support/hangs.ts";
import { logIn, newOrder, openTill, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

let system: TestSystem;
let cashier: Person;
let companion: TestDevice;
let station: string;

beforeAll(async () => {
  system = await sharedSystem();
  ({ cashier, station } = await openTill(system));
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
});
afterAll(() => system.stop());

const read = ({ intent_id }: Intent): Promise<Intent> => cashier.good("GET", `${station}/intents/${intent_id}/`);
const collect = (order_id: number, route: Intent["route"], confirms_money_may_have_moved?: boolean): Promise<Intent> =>
  cashier.good("POST", `${station}/intents/`, { body: { order_id, route, confirms_money_may_have_moved } });
const attestPath = ({ intent_id }: Intent): string => `${station}/intents/${intent_id}/attest/`;

/** Returns a hand-off that the companion fetched and then reported (if `outcome` is set), and that the cashier cancelled. */
async function cancelled(outcome?: string): Promise<Intent> {
  await untilOffered(cashier, station, companion);
  const intent = await collect(await newOrder(cashier, station, "9.00"), "smart_pos");
  await companion.good("GET", "assignment/");
  if (outcome !== undefined)
    await companion.good("POST", "assignment/report/", { body: reportOf(intent, outcome, "first") });
  return cashier.good("POST", `${station}/intents/${intent.intent_id}/cancel/`, {});
}

const reportOf = ({ intent_id }: Intent, outcome: string, key: string, provider_reference = "RRN-1"): object => ({
  intent_id,
  outcome,
  provider_reference,
  client_idempotency_key: key,
});
const reportLate = (intent: Intent, outcome: string, reference = "RRN-1"): Promise<unknown> =>
  companion.refused("intent_not_actionable", "POST", "assignment/report/", {
    body: reportOf(intent, outcome, `late ${reference}`, reference),
  });

describe("a success reported between the creation of the next collection and its attestation", () => {
  it("the attestation needs a confirmation, also with the same key; intent and live view name the reason", async () => {
    const earlier = await cancelled("reported_declined");
    const cash = await collect(earlier.order_id, "cash");
    expect(cash).toMatchObject({ settle_offered: true, settle_obstacle: "", confirmation_needed: null });
    await reportLate(earlier, "reported_success");
    const named = { reason: "late_success", earlier_intent_id: earlier.intent_id };
    const held = { settle_offered: false, settle_obstacle: "money_may_have_moved", confirmation_needed: named };
    await vi.waitFor(async () => expect(await read(cash)).toMatchObject({ ...held, cancel_offered: true }), HANGS);
    expect(await cashier.good("GET", `${station}/live/`)).toMatchObject({ active_intent: held });
    const asks = async (body: object): Promise<number> => {
      const sent = { key: "k", body };
      const answer = await cashier.refused("money_may_have_moved", "POST", attestPath(cash), sent);
      expect([answer.status, answer.body]).toMatchObject([409, named]);
      return answer.body.reason_number ?? expect.unreachable();
    };
    const first = await asks({});
    expect(await read(cash)).toMatchObject({ confirmation_needed: { ...named, reason_number: first } });
    // Another payment of the same collection: the cashier has not been asked about it.
    await reportLate(earlier, "reported_success", "RRN-2");
    const second = await asks({ confirms_money_may_have_moved: true, confirmed_reason_number: first });
    expect(second).toBeGreaterThan(first);
    const confirmed = { key: "k", body: { confirms_money_may_have_moved: true, confirmed_reason_number: second } };
    const paid = await cashier.good<Intent>("POST", attestPath(cash), confirmed);
    expect(paid).toMatchObject({ status: "succeeded", settle_obstacle: "", confirmation_needed: null });
    expect(await cashier.good("POST", attestPath(cash), { key: "k" })).toEqual(paid);
  });
});

// Two rows only: more would exceed the throttle of a device.
describe("a success reported after another collection has paid the order", () => {
  it.each([
    ["the companion was silent", undefined, "handoff_presented"],
    ["the companion had reported a success", "reported_success", "success_reported"],
  ])(
    "%s: intent, order and live view show cashier and owner that the guest may have paid twice",
    async (_what, outcome, before) => {
      const earlier = await cancelled(outcome);
      const { order_id, order_display_number, intent_id } = earlier;
      const cash = await collect(order_id, "cash", true);
      await cashier.good("POST", attestPath(cash));
      const owner = await logIn(system.baseUrl, "backoffice", system.owner);
      const shown = async (reason: string): Promise<void> => {
        const entry = { intent_id, order_id, order_display_number, reason };
        const unclear = reason === "" ? [] : [entry];
        await vi.waitFor(
          async () => expect(await read(earlier)).toMatchObject({ money_may_have_moved: reason }),
          HANGS,
        );
        const order = await cashier.good<Order>("GET", `orders/${order_id}/`);
        expect(order).toMatchObject({ status: "paid", unclear_collections: unclear });
        expect(await owner.good("GET", `orders/${order_id}/`)).toEqual(order);
        const live = await cashier.good<{ unclear_collections: object[] }>("GET", `${station}/live/`);
        expect(live.unclear_collections.filter((each) => "order_id" in each && each.order_id === order_id)).toEqual(
          unclear,
        );
      };
      await shown(before);
      await reportLate(earlier, "reported_success");
      await shown("late_success");
      expect(await read(cash)).toMatchObject({ status: "succeeded", money_may_have_moved: "" });
    },
  );
});

describe("a collection that has left its station's state, and whose order another one has paid", () => {
  // A new credential: the throttle of the first one is used up.
  beforeAll(async () => {
    const owner = await logIn(system.baseUrl, "backoffice", system.owner);
    await owner.good("POST", `devices/${companion.deviceId}/reset/`);
    companion = await enrollDevice(system.baseUrl, await newCode(owner, companion.deviceId));
  });

  it("a late success: the collection stays unclear, and its order and the live view show it", async () => {
    const payInCash = async (order_id: number): Promise<void> => {
      await cashier.good("POST", attestPath(await collect(order_id, "cash", true)));
    };
    const earlier = await cancelled();
    const { order_id, intent_id } = earlier;
    await payInCash(order_id);
    for (let turn = 0; turn < STATE_LIMITS.endedIntents; turn += 1)
      await payInCash(await newOrder(cashier, station, "9.00"));
    await vi.waitFor(async () => {
      const { intents } = await cashier.good<z.infer<typeof intentsSchema>>("GET", `${station}/intents/`);
      expect(intents.map((each) => each.intent_id)).not.toContain(intent_id);
    }, HANGS);

    const shown = async (reason: string): Promise<void> => {
      await vi.waitFor(async () => expect(await read(earlier)).toMatchObject({ money_may_have_moved: reason }), HANGS);
      const unclear_collections = [{ intent_id, order_id, order_display_number: null, reason }];
      expect(await cashier.good("GET", `orders/${order_id}/`)).toMatchObject({ status: "paid", unclear_collections });
      const live = await cashier.good("GET", `${station}/live/`);
      expect(live).toMatchObject({ unclear_collections: expect.arrayContaining(unclear_collections) as unknown });
    };
    await shown("handoff_presented");
    await reportLate(earlier, "reported_success");
    await shown("late_success");
  });
});
