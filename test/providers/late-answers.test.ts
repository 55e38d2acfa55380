/** A switch or an end while a provider makes a payment: the service returns no QR and cancels the payment. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { withdrawProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import { waitFor } from "../support/wait-for.ts";
import { type AnsweringProvider, startAnsweringProvider } from "./answering-provider.ts";
import { type Intent, type ProvidersWorld, startProvidersWorld, untilFrozen } from "./providers-world.ts";

let world: ProvidersWorld;
let provider: AnsweringProvider;
beforeAll(async () => {
  [provider, world] = await Promise.all([startAnsweringProvider(), startProvidersWorld()]);
});
afterAll(async () => {
  await world.stop();
  await provider.stop();
});

/** Requests a payment whose provider answers when the test allows it. */
async function ask() {
  await provider.giveBack(world);
  const place = await world.openPlace();
  const configId = await world.addSandboxConfig(place);
  const intent = await world.openIntent(place, 1203);
  const [{ account }] = await world.database<[{ account: string }]>`
    select settings ->> 'account' as account from provider_configs where config_id = ${configId}`;
  await provider.takeOver(world);
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
  const made = { payment_id: "P-1", account, amount: "12.03", currency: "EUR", qr_payload: "https://pay.example/P-1" };
  let reference: unknown;
  provider.asked.length = 0;
  provider.answer = async ({ path, body }) => {
    if (path.endsWith("/cancel")) return { ...made, reference, status: "cancelled" };
    reference = body["reference"];
    await isReleased;
    return { ...made, reference, status: "pending" };
  };
  const reply = world.askProvider(place, configId, intent);
  await waitFor("the question", () => provider.asked.length === 1);
  return { place, configId, intent, reply, release };
}

const cancellations = (): number => provider.asked.filter(({ path }) => path.endsWith("/cancel")).length;
const rowOf = async ({ intentId }: Intent): Promise<unknown> => {
  const [row] = await world.database`
    select status, failure, qr_payload, provider_reference from provider_payments where intent_id = ${intentId}`;
  return row;
};

test("a switch is set before the provider answers: no QR is returned, and the payment is cancelled", async () => {
  const { configId, intent, place, reply, release } = await ask();
  await world.bus.js.publish(`$KV.SWITCHES.provider.${configId}`, "{}");
  await untilFrozen(world, place, configId);
  expect(cancellations()).toBe(0);
  release();
  expect(await reply).toEqual({ created: false, reason: "provider_frozen" });
  await waitFor("the cancellation", () => cancellations() === 1);
  expect(await rowOf(intent)).toEqual({
    status: "failed",
    failure: "provider_frozen",
    qr_payload: "",
    provider_reference: "P-1",
  });
});

test("the intent ends before the provider answers: after the answer, the payment is cancelled again", async () => {
  const { intent, reply, release } = await ask();
  await world.ask(withdrawProviderPayment, { intentId: intent.intentId });
  await waitFor("the first cancellation", async () => {
    const [task] = await world.database`
      select outcome from provider_tasks where intent_id = ${intent.intentId} and kind = 'withdraw'`;
    return task?.["outcome"] === "cancelled";
  });
  expect(cancellations()).toBe(1);
  release();
  await reply;
  await waitFor("the second cancellation", () => cancellations() === 2);
});
