/** What guests and the payment scheme do about one QR. */
import { setTimeout as delay } from "node:timers/promises";
import { ACCOUNT, type Filial, type MoneyWorld } from "./money-world.ts";
import type { GuestAct, GuestStep } from "./schedule.ts";
import type { Assertion, Scheme } from "./scheme.ts";

export interface Scene {
  readonly world: Pick<MoneyWorld, "database" | "log">;
  readonly scheme: Scheme;
  readonly filial: Filial;
  readonly intentId: number;
}

/** The provider gets a request within this time, or gets none, because the host was killed or the provider is frozen. */
const REQUESTED_WITHIN_MS = 3_000;
const END_WITHIN_MS = 2_500;

let payments = 0;
let events = 0;
const newTransactionId = (): string => `T${(payments += 1)}`;
const newEvent = (): string => `E${(events += 1)}`;

export async function playGuest(scene: Scene, steps: readonly GuestStep[]): Promise<void> {
  const payment = await findPayment(scene);
  if (payment === undefined) return;
  const { configId, currency } = scene.filial;
  const right: Assertion = { configId, transactionId: newTransactionId(), account: ACCOUNT, currency, ...payment };
  for (const { act, afterMs } of steps) {
    await delay(afterMs);
    await ACTS[act](scene, right);
  }
}

/** Sends an unregistered payment of this amount. Returns its transaction id. */
export async function payStray(
  { scheme, filial }: Pick<Scene, "scheme" | "filial">,
  amountMinor: number,
): Promise<string> {
  const { configId, currency, secret } = filial;
  const transactionId = newTransactionId();
  const money = {
    configId,
    transactionId,
    account: ACCOUNT,
    currency,
    amountMinor,
    reference: `STRAY${transactionId}`,
  };
  await scheme.pay(secret, money, { id: newEvent() });
  return transactionId;
}

type Act = (scene: Scene, right: Assertion) => Promise<void>;

const pay = ({ scheme, filial }: Scene, money: Assertion, copies = 1): Promise<void> =>
  scheme.pay(filial.secret, money, { id: newEvent(), copies });
const notify = ({ scheme, filial }: Scene, type: string, reference: string): Promise<void> =>
  scheme.notify(filial.secret, filial.configId, { id: newEvent(), type, reference });
/** The scheme asserts the payment also at the other config of the account, if the account has one. */
async function payAtTwin({ scheme, filial: { twin } }: Scene, money: Assertion): Promise<void> {
  if (twin !== undefined) await scheme.pay(twin.secret, { ...money, configId: twin.configId }, { id: newEvent() });
}
/** Another payment with the same facts. */
const second = (right: Assertion): Assertion => ({ ...right, transactionId: newTransactionId() });

const ACTS: Readonly<Record<GuestAct, Act>> = {
  pays: (scene, right) => pay(scene, right),
  async pays_with_many_callbacks(scene, right) {
    await Promise.all([pay(scene, right, 3), pay(scene, right)]);
  },
  async pays_twice(scene, right) {
    await Promise.all([pay(scene, right), pay(scene, second(right))]);
  },
  async pays_after_the_end(scene, right) {
    await waitForEnd(scene);
    await pay(scene, right);
  },
  wrong_amount: (scene, right) => pay(scene, { ...second(right), amountMinor: right.amountMinor + 50 }),
  wrong_currency: (scene, right) =>
    pay(scene, { ...second(right), currency: right.currency === "USD" ? "EUR" : "USD" }),
  wrong_account: (scene, right) => pay(scene, { ...second(right), account: "M-2" }),
  unregistered: (scene, right) => pay(scene, { ...second(right), reference: `UNKNOWN${right.transactionId}` }),
  same_money_without_reference: (scene, right) => pay(scene, { ...right, reference: `LOST${right.transactionId}` }),
  async same_money_for_another(scene, right) {
    const earlier = scene.scheme.assertions.findLast(
      ({ configId, reference, account, amountMinor, currency }) =>
        configId === right.configId &&
        reference !== right.reference &&
        `${account} ${amountMinor} ${currency}` === `${right.account} ${right.amountMinor} ${right.currency}`,
    );
    if (earlier !== undefined) await pay(scene, { ...right, transactionId: earlier.transactionId });
  },
  async asserted_at_the_twin(scene, right) {
    await Promise.all([pay(scene, right), payAtTwin(scene, { ...right, reference: `LOST${right.transactionId}` })]);
  },
  async asserted_for_the_twins_qr(scene, right) {
    const { currency, twin } = scene.filial;
    const [newest] = await scene.world.database<[{ reference: string }?]>`
      select reference from provider_payments
      where config_id = ${twin?.configId ?? 0} and amount_minor = ${right.amountMinor} and currency = ${currency}
      order by intent_id desc limit 1`;
    const reference = newest?.reference ?? `LOST${right.transactionId}`;
    await Promise.all([pay(scene, right), payAtTwin(scene, { ...right, reference })]);
  },
  async wrong_then_right(scene, right) {
    const money = second(right);
    await pay(scene, { ...money, amountMinor: right.amountMinor === 700 ? 1_250 : 700 });
    await pay(scene, money);
  },
  declines: (scene, right) => notify(scene, "payment.declined", right.reference),
  async pays_then_declines(scene, right) {
    await Promise.all([pay(scene, right), notify(scene, "payment.declined", right.reference)]);
  },
  sends_an_unknown_type: (scene, right) => notify(scene, "payment.unknown_type", right.reference),
  forges: ({ scheme }, right) => scheme.forge(second(right), newEvent()),
};

async function findPayment({
  world,
  intentId,
}: Scene): Promise<{ reference: string; amountMinor: number } | undefined> {
  const untilMs = Date.now() + REQUESTED_WITHIN_MS;
  while (Date.now() < untilMs) {
    const [row] = await world.database<[{ reference: string; amount: string }?]>`
      select reference, amount_minor::text as amount from provider_payments where intent_id = ${intentId}`;
    if (row !== undefined) return { reference: row.reference, amountMinor: Number(row.amount) };
    await delay(5);
  }
  return undefined;
}

const ENDS = ["intent_cancelled", "intent_expired", "intent_succeeded", "provider_failed"];

async function waitForEnd({ world, filial, intentId }: Scene): Promise<void> {
  const untilMs = Date.now() + END_WITHIN_MS;
  const hasEnded = (): boolean =>
    world.log.eventsOf(filial.stationId).some((event) => event["intentId"] === intentId && ENDS.includes(event.type));
  while (!hasEnded() && Date.now() < untilMs) await delay(20);
}
