/** While a kill switch of any kind is on, no QR is made. A QR that is being made then: late-answers.test.ts. */
import { headers } from "nats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { type Place, type ProvidersWorld, startProvidersWorld, untilFrozen } from "./providers-world.ts";

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const KINDS = ["platform", "organization", "station", "provider"] as const;
type Kind = (typeof KINDS)[number];

async function flip(kind: Kind, { organizationId, stationId }: Place, options: { configId: number; isOn: boolean }) {
  const id = { platform: 0, organization: organizationId, station: stationId, provider: options.configId }[kind];
  const deletion = headers();
  deletion.set("KV-Operation", "DEL");
  const subject = `$KV.SWITCHES.${kind === "platform" ? kind : `${kind}.${id}`}`;
  await world.bus.js.publish(subject, options.isOn ? "{}" : "", options.isOn ? {} : { headers: deletion });
}

/** Waits until the service has received the switch. */
async function freeze(kind: Kind, place: Place, configId: number): Promise<void> {
  await flip(kind, place, { configId, isOn: true });
  await untilFrozen(world, place, configId);
}

describe.each(KINDS)("the switch of the %s", (kind) => {
  test("is on: no payment is requested", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    await freeze(kind, place, configId);
    try {
      const intent = await world.openIntent(place, 1203);
      expect(await world.askProvider(place, configId, intent)).toEqual({ created: false, reason: "provider_frozen" });
      const rows = await world.database`select 1 from provider_payments where intent_id = ${intent.intentId}`;
      expect(rows).toEqual([]);
    } finally {
      await flip(kind, place, { configId, isOn: false });
    }
  });

  test("is on, and a stopped process left a request without an answer: not repeated, its payment is withdrawn", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1203);
    const { intentId, orderDisplayNumber } = intent;
    await world.database`
      insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
        account, amount_minor, currency, expires_at, asked_until)
      values (${intentId}, ${configId}, ${place.organizationId}, ${place.stationId}, ${orderDisplayNumber},
        ${`R-${intentId}`}, 'A', 1203, 'EUR', ${new Date(intent.expiresAtMs)}, now() - interval '1 second')`;
    await freeze(kind, place, configId);
    try {
      expect(await world.askProvider(place, configId, intent)).toEqual({ created: false, reason: "provider_frozen" });
      const tasks = await world.database`select kind from provider_tasks where intent_id = ${intentId}`;
      expect(tasks).toEqual([{ kind: "withdraw" }]);
      // The provider was not asked, so the payment has no provider reference.
      const rows = await world.database`select provider_reference from provider_payments where intent_id = ${intentId}`;
      expect(rows).toEqual([{ provider_reference: "" }]);
    } finally {
      await flip(kind, place, { configId, isOn: false });
    }
    await waitFor("the switch back", async () => {
      return (await world.askProvider(place, configId, await world.openIntent(place, 1203))).created;
    });
  });
});
