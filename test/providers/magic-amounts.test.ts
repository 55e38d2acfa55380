/** Each magic amount of the sandbox provider, driven over HTTP to what its table says. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ISSUE_KINDS } from "../../services/bus/messages/providers.ts";
import * as messages from "../../services/bus/messages/providers.ts";
import type { RequestedCommand } from "../../services/bus/messages/station.ts";
import {
  DEFAULT_SCENARIO,
  MAGIC_AMOUNTS,
  type Scenario,
  scenarioOf,
} from "../../services/sandbox-provider/magic-amounts.ts";
import { type Intent, type Place, type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";
import { waitFor } from "./waiting.ts";

/** What this service must have done in the end. */
interface End {
  /** The answer to the actor host: `qr`, or the reason for none. */
  readonly asked: string;
  /** What the station was told, in its order. */
  readonly told: readonly RequestedCommand["type"][];
  readonly reason?: string;
  readonly isPaid: boolean;
  readonly issues: readonly (typeof ISSUE_KINDS)[number][];
  /** Statuses of the callbacks' answers. */
  readonly callbacks: readonly number[];
}

const PAID: End = { asked: "qr", told: ["provider_confirm"], isPaid: true, issues: [], callbacks: [200] };
const MISFIT = { asked: "qr", told: [], isPaid: false, callbacks: [200] } as const;
const NO_QR = { isPaid: false, issues: [], callbacks: [] } as const;

const ENDS: Record<Scenario, End> = {
  approve: PAID,
  decline: { ...PAID, told: ["provider_failed"], reason: "payment_declined", isPaid: false },
  buyer_cancel: { ...PAID, told: ["provider_failed"], reason: "buyer_cancelled", isPaid: false },
  never_pays: { ...PAID, told: ["provider_failed"], reason: "provider_expired", isPaid: false },
  duplicate_callback: { ...PAID, callbacks: [200, 200, 200] },
  late_success: { ...PAID, isPaid: false, issues: ["late_money"] },
  wrong_amount: { ...MISFIT, issues: ["amount_mismatch"] },
  wrong_currency: { ...MISFIT, issues: ["currency_mismatch"] },
  wrong_reference: { ...MISFIT, issues: ["reference_mismatch"] },
  wrong_account: { ...MISFIT, issues: ["account_mismatch"] },
  unknown: { asked: "qr", told: [], isPaid: false, issues: [], callbacks: [] },
  provider_down: { ...NO_QR, asked: "provider_unavailable", told: ["provider_cleared"] },
  provider_hangs: { ...NO_QR, asked: "provider_timed_out", told: ["provider_cleared"] },
  refuse: { ...NO_QR, asked: "provider_refused", told: [] },
  garbage: { ...NO_QR, asked: "provider_answer_invalid", told: ["provider_cleared"] },
  out_of_order: { ...PAID, callbacks: [200, 200, 200] },
  lost_callback: { ...PAID, callbacks: [] },
  early_callback: PAID,
  double_payment: { ...PAID, issues: ["duplicate_money"], callbacks: [200, 200] },
  stray_money: { ...PAID, issues: ["unmatched_money"], callbacks: [200, 200] },
};

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const amountOf = (scenario: Scenario): number => {
  const magic = MAGIC_AMOUNTS.find((other) => other.scenario === scenario);
  return magic === undefined ? 1250 : 1200 + Number(magic.ending);
};

test("an amount names its scenario by its last two digits, in every currency, and the table has each once", () => {
  expect(new Set(MAGIC_AMOUNTS.map(({ ending }) => ending)).size).toBe(MAGIC_AMOUNTS.length);
  expect(MAGIC_AMOUNTS.every(({ ending }) => /^\d\d$/.test(ending))).toBe(true);
  expect(scenarioOf("1201")).toBe("decline");
  expect(scenarioOf("1")).toBe("decline");
  expect(scenarioOf("1210")).toBe(DEFAULT_SCENARIO);
  expect(scenarioOf("0")).toBe(DEFAULT_SCENARIO);
});

describe.concurrent("the sandbox provider", () => {
  test.each(Object.entries(ENDS) as [Scenario, End][])(
    "%s ends as documented",
    async (scenario, end) => {
      const place = await world.openPlace();
      const configId = await world.addSandboxConfig(place);
      const intent = await world.openIntent(place, amountOf(scenario));
      world.stations.collect(intent);
      if (scenario === "late_success") {
        world.stations.answer(intent.intentId, "provider_confirm", {
          ok: false,
          code: "intent_not_actionable",
          status: "cancelled",
        });
      }
      const answer = await world.askProvider(place, configId, intent, WAITING.has(scenario) ? 1_500 : 60_000);
      expect(answer.created ? "qr" : answer.reason).toBe(end.asked);
      if (answer.created) expect(answer.qrPayload).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/pay\/pay_[\w-]{24}$/);
      if (scenario === "late_success") {
        await world.ask(messages.withdrawProviderPayment, { intentId: intent.intentId });
      }
      if (scenario === "unknown") await waitFor("the last question", () => wasGivenUp(intent), 15_000);
      await waitFor(`the end of ${scenario}`, () => hasEnded(place, intent, end), 15_000);
      await expectEnd(place, configId, intent, end);
    },
    40_000,
  );
});

/** These wait for the deadline, which is short here. */
const WAITING: ReadonlySet<Scenario> = new Set(["never_pays", "unknown"]);

/** Asked for the last time, and told to cancel, which the provider cannot say either. */
async function wasGivenUp({ intentId }: Intent): Promise<boolean> {
  const rows = await world.database<{ kind: string }[]>`
    select kind from provider_tasks where intent_id = ${intentId} and outcome = 'unknown'`;
  return rows.length === 2;
}

async function stateOf(place: Place, intent: Intent) {
  const { issues } = await world.ask(messages.listIssues, { caller: place.operator, limit: 100 });
  const rows = await world.database`select 1 from transactions where order_id = ${intent.orderId}`;
  const told = world.stations.about(intent.intentId).map(({ command }) => command.type);
  return { kinds: issues.map((issue) => issue.kind), transactions: rows.length, told };
}

const callbacksOf = (configId: number): number[] =>
  world.gateway.seen.filter(({ path }) => path.includes(`/${configId}/`)).map(({ answer }) => answer.status);

async function hasEnded(place: Place, intent: Intent, end: End): Promise<boolean> {
  const { kinds, transactions, told } = await stateOf(place, intent);
  const [row] = await world.database<[{ config_id: number }?]>`
    select config_id from provider_payments where intent_id = ${intent.intentId}`;
  const callbacks = row === undefined ? [] : callbacksOf(row.config_id);
  return (
    kinds.length >= end.issues.length &&
    transactions >= (end.isPaid ? 1 : 0) &&
    told.length >= end.told.length &&
    callbacks.length >= end.callbacks.length
  );
}

async function expectEnd(place: Place, configId: number, intent: Intent, end: End): Promise<void> {
  const { kinds, transactions, told } = await stateOf(place, intent);
  expect(kinds).toEqual(end.issues);
  expect(transactions).toBe(end.isPaid ? 1 : 0);
  expect(told).toEqual(end.told);
  expect(callbacksOf(configId)).toEqual(end.callbacks);
  const failed = world.stations.about(intent.intentId).find(({ command }) => command.type === "provider_failed");
  if (end.reason !== undefined) expect(failed?.command).toMatchObject({ reason: end.reason });
  const answers = world.gateway.seen.filter(({ path }) => path.includes(`/${configId}/`));
  const byBody = new Map(answers.map(({ body, answer }) => [body, answer.body]));
  for (const { body, answer } of answers) expect(answer.body).toBe(byBody.get(body));
}
