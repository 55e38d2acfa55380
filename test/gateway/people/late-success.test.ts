/** A success that a companion reports after its station has dropped the collection, through the real service. */

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { intentsSchema } from "../../../gateway/api/cashier/intents.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { enrollSandboxDevice, type TestDevice } from "../../support/devices.ts";
import { HANGS } from "../../support/hangs.ts";
import { logIn, newOrder, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Intent = z.infer<typeof intentSchema>;

let system: TestSystem;
let cashier: Person;
let companion: TestDevice;
let station: string;

beforeAll(async () => {
  system = await sharedSystem();
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  await companion.good("POST", "heartbeat/", { body: {} });
});
afterAll(() => system.stop());

const collect = (order_id: number, route: Intent["route"], confirms_money_may_have_moved?: boolean): Promise<Intent> =>
  cashier.good("POST", `${station}/intents/`, { body: { order_id, route, confirms_money_may_have_moved } });
const read = ({ intent_id }: Intent): Promise<Intent> => cashier.good("GET", `${station}/intents/${intent_id}/`);

const openOrder = (): Promise<number> => newOrder(cashier, station, "9.00");

async function payInCash(order_id: number): Promise<void> {
  const { intent_id } = await collect(order_id, "cash", true);
  await cashier.good("POST", `${station}/intents/${intent_id}/attest/`);
}

describe("a collection that has left its station's state, and whose order another one has paid", () => {
  it("a late success: the collection stays unclear, and its order and the live view show it", async () => {
    const order_id = await openOrder();
    const earlier = await vi.waitUntil(() => collect(order_id, "smart_pos").catch(() => undefined), HANGS);
    await companion.good("GET", "assignment/");
    await cashier.good("POST", `${station}/intents/${earlier.intent_id}/cancel/`, {});
    await payInCash(order_id);
    for (let turn = 0; turn < STATE_LIMITS.endedIntents; turn += 1) await payInCash(await openOrder());
    await vi.waitFor(async () => {
      const { intents } = await cashier.good<z.infer<typeof intentsSchema>>("GET", `${station}/intents/`);
      expect(intents.map(({ intent_id }) => intent_id)).not.toContain(earlier.intent_id);
    }, HANGS);

    const shown = async (reason: string): Promise<void> => {
      const { intent_id } = earlier;
      await vi.waitFor(async () => expect(await read(earlier)).toMatchObject({ money_may_have_moved: reason }), HANGS);
      const unclear_collections = [{ intent_id, order_id, reason }];
      expect(await cashier.good("GET", `orders/${order_id}/`)).toMatchObject({ status: "paid", unclear_collections });
      expect(await cashier.good("GET", `${station}/live/`)).toMatchObject({ unclear_collections });
    };
    await shown("handoff_presented");
    const body = { intent_id: earlier.intent_id, outcome: "reported_success", provider_reference: "RRN-9" };
    await companion.refused("intent_not_actionable", "POST", "assignment/report/", { body });
    await shown("late_success");
  });
});
