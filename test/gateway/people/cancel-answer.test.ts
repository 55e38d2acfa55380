/** The answer to a cancellation names what is unclear at its commit. Each repetition gets the same answer (I6). */

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import { enrollSandboxDevice, type TestDevice, untilOffered } from "../../support/devices.ts";
import { HANGS } from "../../support/hangs.ts";
import { newOrder, openTill, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Intent = z.infer<typeof intentSchema>;

const REPORTED_WITHIN_MS = 15_000;

let system: TestSystem;
let cashier: Person;
let companion: TestDevice;
let station: string;

beforeAll(async () => {
  // The sandbox provider decides late, so that the guest's payment is still open when the cashier cancels.
  system = await sharedSystem({ sandboxProvider: true });
  ({ cashier, station } = await openTill(system));
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
});
afterAll(() => system.stop());

async function collect(route: Intent["route"], unit_amount: string): Promise<Intent> {
  const order_id = await newOrder(cashier, station, unit_amount);
  return cashier.good<Intent>("POST", `${station}/intents/`, { body: { order_id, route } });
}

const read = ({ intent_id }: Intent): Promise<Intent> => cashier.good("GET", `${station}/intents/${intent_id}/`);
const cancel = ({ intent_id }: Intent, key: string): Promise<Intent> =>
  cashier.good("POST", `${station}/intents/${intent_id}/cancel/`, { key });

async function presented(intent: Intent): Promise<Intent> {
  await vi.waitFor(async () => expect((await read(intent)).status).toBe("presented"), REPORTED_WITHIN_MS);
  return intent;
}

async function handedOver(): Promise<Intent> {
  await untilOffered(cashier, station, companion);
  return collect("smart_pos", "9.00");
}

async function reported(outcome: string): Promise<Intent> {
  const intent = await handedOver();
  const body = { intent_id: intent.intent_id, outcome, client_idempotency_key: `report-${intent.intent_id}` };
  await companion.good("POST", "assignment/report/", { body });
  return intent;
}

describe("the answer to the cancellation of a collection", () => {
  it("a shown QR: named, also after the provider has reported late money", async () => {
    const intent = await presented(await collect("dynamic_qr", "12.06"));
    const first = await cancel(intent, "qr");
    expect(first).toMatchObject({ status: "cancelled", money_may_have_moved: "qr_presented" });
    expect(await cancel(intent, "qr")).toEqual(first);
    await vi.waitFor(
      async () => expect((await read(intent)).money_may_have_moved).toBe("late_money"),
      REPORTED_WITHIN_MS,
    );
    expect(await cancel(intent, "qr")).toEqual(first);
  });

  it("a shown QR: named, also after the provider has reported that no money moved", async () => {
    const intent = await presented(await collect("dynamic_qr", "12.03"));
    const first = await cancel(intent, "unpaid");
    expect(first).toMatchObject({ status: "cancelled", money_may_have_moved: "qr_presented" });
    await vi.waitFor(async () => expect((await read(intent)).money_may_have_moved).toBe(""), REPORTED_WITHIN_MS);
    expect(await cancel(intent, "unpaid")).toEqual(first);
  });

  it.each([
    ["reported_success", "success_reported"],
    ["reported_unknown", "outcome_unknown"],
    ["reported_declined", ""],
  ])("the companion's report %s: the answer names what is unclear", async (outcome, unclear) => {
    const intent = await reported(outcome);
    const first = await cancel(intent, "companion");
    expect(first).toMatchObject({ status: "cancelled", money_may_have_moved: unclear });
    expect(await cancel(intent, "companion")).toEqual(first);
    await vi.waitFor(async () => expect((await read(intent)).money_may_have_moved).toBe(unclear), HANGS);
  });

  it("a fetched hand-off without a report: a late report changes the mark, but not the answer", async () => {
    const intent = await handedOver();
    await companion.good("GET", "assignment/");
    const first = await cancel(intent, "silent");
    expect(first).toMatchObject({ status: "cancelled", money_may_have_moved: "handoff_presented" });
    const lateReport = (outcome: string) =>
      companion.refused("intent_not_actionable", "POST", "assignment/report/", {
        body: { intent_id: intent.intent_id, outcome, client_idempotency_key: outcome },
      });
    const collectAgain = () =>
      cashier.refused("money_may_have_moved", "POST", `${station}/intents/`, {
        body: { order_id: intent.order_id, route: "cash" },
      });
    const live = () => cashier.good<{ last_ended_intent: Intent }>("GET", `${station}/live/`);
    const marked = async (mark: string): Promise<void> => {
      expect(await read(intent)).toMatchObject({ money_may_have_moved: mark });
      expect((await live()).last_ended_intent).toMatchObject({ money_may_have_moved: mark });
      const { status, body } = await collectAgain();
      const named = { reason: mark, earlier_intent_id: intent.intent_id };
      expect([status, body]).toMatchObject([409, named]);
    };
    await marked("handoff_presented");
    await lateReport("reported_success");
    await marked("late_success");
    await lateReport("reported_declined");
    await marked("late_success");
    expect(await cancel(intent, "silent")).toEqual(first);
  });

  it("a fetched hand-off, declined after the cancellation: the next collection needs no confirmation", async () => {
    const intent = await handedOver();
    await companion.good("GET", "assignment/");
    expect(await cancel(intent, "late decline")).toMatchObject({ money_may_have_moved: "handoff_presented" });
    const body = { intent_id: intent.intent_id, outcome: "reported_declined", client_idempotency_key: "late decline" };
    await companion.refused("intent_not_actionable", "POST", "assignment/report/", { body });
    expect(await read(intent)).toMatchObject({ money_may_have_moved: "" });
    const next = { order_id: intent.order_id, route: "cash" };
    await cancel(await cashier.good<Intent>("POST", `${station}/intents/`, { body: next }), "next");
  });

  it("no QR and no hand-off: the answer names nothing unclear", async () => {
    const intent = await collect("cash", "3.00");
    const first = await cancel(intent, "cash");
    expect(first).toMatchObject({ status: "cancelled", money_may_have_moved: "" });
    expect(await cancel(intent, "cash")).toEqual(first);
  });
});
