/** A companion's reference that has settled another order: the cashier confirms it, knowing the reports of that moment. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import { enrollSandboxDevice, type TestDevice, untilOffered } from "../../support/devices.ts";
import { newOrder, openTill, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

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

const collect = async (route: Intent["route"]): Promise<Intent> => {
  const order_id = await newOrder(cashier, station, "9.00");
  return cashier.good("POST", `${station}/intents/`, { body: { order_id, route } });
};
const attestPath = ({ intent_id }: Intent): string => `${station}/intents/${intent_id}/attest/`;

describe("a companion reports another used reference while the cashier confirms the first one", () => {
  it("the service asks again, and a confirmation that knows both reports counts, also with the same key", async () => {
    for (const reference of ["RRN-USED-1", "RRN-USED-2"]) {
      const intent = await collect("attested_terminal");
      await cashier.good("POST", attestPath(intent), { body: { reference } });
    }
    await untilOffered(cashier, station, companion);
    const intent = await collect("smart_pos");
    await companion.good("GET", "assignment/");
    const report = (provider_reference: string): Promise<unknown> =>
      companion.good("POST", "assignment/report/", {
        body: {
          intent_id: intent.intent_id,
          outcome: "reported_success",
          provider_reference,
          client_idempotency_key: provider_reference,
        },
      });
    const attest = (body: object) => ({ key: "used", body });
    const confirmed = { confirms_reference_already_used: true };
    await report("RRN-USED-1");
    await cashier.refused("reference_already_used", "POST", attestPath(intent), attest({}));
    await report("RRN-USED-2");
    const early = attest({ ...confirmed, confirmed_report_count: 1 });
    await cashier.refused("reference_already_used", "POST", attestPath(intent), early);
    const paid = await cashier.good("POST", attestPath(intent), attest({ ...confirmed, confirmed_report_count: 2 }));
    expect(paid).toMatchObject({ status: "succeeded", attestation: { reference: "RRN-USED-2" } });
  });
});
