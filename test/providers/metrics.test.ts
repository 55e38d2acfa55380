/** The metrics of the providers service, each after the events that it counts. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as callbackMessages from "../../services/bus/messages/callbacks.ts";
import * as issueMessages from "../../services/bus/messages/issues.ts";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { emvcoSettings } from "../support/emvco-settings.ts";
import { metricSum, type Series } from "../support/scrape.ts";
import { waitFor } from "../support/wait-for.ts";
import { paidBody, type SignedBody, sendCallback } from "./emvco-callback.ts";
import { type Place, type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";

const SECRET = "the secret of these callbacks";
const SETTINGS = emvcoSettings();

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

type Labels = Readonly<Record<string, string>>;

/** By how much each of these metrics grows during `act`. Metrics that do not grow are left out. */
async function growth(names: readonly string[], act: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await world.scrape();
  await act();
  const after = await world.scrape();
  const grown = after
    .filter(({ name }) => names.includes(name))
    .map(({ name, labels, value }) => [keyOf(name, labels), value - (metricSum(before, name, labels) ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, by]) => by !== 0));
}

function keyOf(name: string, { process: _process, ...labels }: Labels): string {
  return [name, ...Object.values(labels)].join(" ");
}

async function comes(name: string, labels: Labels, least: number): Promise<readonly Series[]> {
  return await waitFor(`${name} ${JSON.stringify(labels)}`, async () => {
    const series = await world.scrape();
    return (metricSum(series, name, labels) ?? 0) >= least && series;
  });
}

async function addScheme(): Promise<{ readonly place: Place; readonly configId: number }> {
  const place = await world.openPlace();
  const facts = { filialId: place.filialId, kind: "emvco_generic", mode: "test", name: "Acquirer" } as const;
  const secrets = { callback_secret: SECRET.replaceAll(" ", "-") };
  const request = { caller: place.owner, ...facts, settings: SETTINGS, secrets };
  return { place, configId: (await world.ask(configMessages.createProviderConfig, request)).config.configId };
}

const notify = (configId: number, body: string, more: Partial<SignedBody> = {}) =>
  sendCallback(world, { configId, body, secret: SECRET.replaceAll(" ", "-"), ...more });
const stray = (transaction_id: string) =>
  paidBody({ reference: "unknown", transaction_id, merchant_id: "M-1", amount: "12.50", currency: "EUR" });

/** A payment of EUR 12.50 with the reference of this intent's request to the provider. */
async function moneyOf(intentId: number, transaction_id: string) {
  const [{ reference }] = await world.database<[{ reference: string }]>`
    select reference from provider_payments where intent_id = ${intentId}`;
  return { reference, transaction_id, merchant_id: "M-1", amount: "12.50", currency: "EUR" };
}

async function outcomeOf(intentId: number, kind: string): Promise<string | undefined> {
  const [row] = await world.database<{ outcome: string | null }[]>`
    select outcome from provider_tasks where intent_id = ${intentId} and kind = ${kind}`;
  return row?.outcome ?? undefined;
}

describe("callbacks", () => {
  test("are counted and timed by their answer, and their refusals by reason", async () => {
    const { configId } = await addScheme();
    const body = stray("T-1");
    const names = [
      "providers_callbacks_total",
      "providers_callback_duration_seconds_count",
      "providers_callback_refusals_recorded_total",
    ];
    const grown = await growth(names, async () => {
      await notify(configId, body);
      await notify(configId, body);
      await notify(configId, body);
      await notify(configId, stray("T-2"), { secret: "a wrong one" });
      await notify(configId, stray("T-3"), { atMs: Date.now() - 2 * PROVIDER_LIMITS.callbackToleranceMs });
      await notify(configId + 1_000, stray("T-4"));
      await notify(configId, "no JSON");
      await notify(configId, "x".repeat(PROVIDER_LIMITS.callbackBytes + 1));
    });
    const expected = {
      recorded: 2,
      duplicate: 2,
      signature_invalid: 3,
      body_too_large: 1,
    };
    expect(grown).toEqual({
      ...prefixed("providers_callbacks_total", expected),
      ...prefixed("providers_callback_duration_seconds_count", expected),
      ...prefixed("providers_callback_refusals_recorded_total", {
        signature_invalid: 1,
        timestamp_stale: 1,
        config_unknown: 1,
        body_too_large: 1,
      }),
    });
  });

  test("throttled callbacks are answered and no longer recorded", async () => {
    const { configId } = await addScheme();
    const names = ["providers_callbacks_total", "providers_callback_refusals_recorded_total"];
    const tries = callbackMessages.CALLBACK_REFUSAL_RATE.refusals + 3;
    const grown = await growth(names, async () => {
      const from = { secret: "a wrong one", address: "192.0.2.77" };
      for (let index = 0; index < tries; index += 1) await notify(configId, "{}", from);
    });
    expect(grown).toEqual({
      ...prefixed("providers_callbacks_total", { signature_invalid: tries - 3, throttled: 3 }),
      ...prefixed("providers_callback_refusals_recorded_total", { signature_invalid: tries - 3 }),
    });
  });
});

describe("issues", () => {
  test("are counted once each, by kind, however often the payment is asserted", async () => {
    const { place, configId } = await addScheme();
    const intent = await world.openIntent(place, 1_250);
    await world.askProvider(place, configId, intent);
    const money = { ...(await moneyOf(intent.intentId, "T-9")), amount: "99.00" };
    const grown = await growth(["providers_issues_total"], async () => {
      await notify(configId, stray("T-8"));
      await notify(configId, stray("T-8"));
      await notify(configId, paidBody(money));
    });
    expect(grown).toEqual(prefixed("providers_issues_total", { unmatched_money: 1, amount_over: 1 }));
  });

  test("that are open are counted by kind, with the age of the oldest", async () => {
    const { place, configId } = await addScheme();
    await notify(configId, stray("T-7"));
    const [issue] = await world.database<{ issue_id: number; waiting: number }[]>`
      update issues set opened_at = now() - interval '2 hours'
      where issue_id = (select max(issue_id) from issues where organization_id = ${place.organizationId})
      returning issue_id, (select count(*)::int from issues where status = 'open' and kind = 'unmatched_money') as waiting`;
    if (issue === undefined) throw new Error("There is no issue.");
    const shown = async () => {
      const series = await world.scrape();
      const count = (kind: string) => metricSum(series, "issues_unresolved", { kind });
      return {
        unmatched: count("unmatched_money"),
        tips: count("tip"),
        hours: Math.floor((metricSum(series, "issues_oldest_unresolved_age_seconds") ?? 0) / 3_600),
      };
    };
    expect(await shown()).toEqual({ unmatched: issue.waiting, tips: 0, hours: 2 });
    const closing = { caller: place.operator, issueId: issue.issue_id, reason: "Paid back" };
    await world.ask(issueMessages.closeIssue, closing);
    expect(await shown()).toEqual({ unmatched: issue.waiting - 1, tips: 0, hours: 0 });
  });

  test("that a station's refusal raises are counted too", async () => {
    const { place, configId } = await addScheme();
    const intent = await world.openIntent(place, 1_250);
    world.stations.answer(intent.intentId, "provider_confirm", {
      ok: false,
      code: "intent_not_actionable",
      status: "cancelled",
    });
    await world.askProvider(place, configId, intent);
    await notify(configId, paidBody(await moneyOf(intent.intentId, "T-10")));
    const series = await comes("providers_issues_total", { kind: "late_money" }, 1);
    expect(metricSum(series, "providers_tasks_total", { kind: "confirm", outcome: "late_money" })).toBe(1);
  });
});

describe("calls to a provider", () => {
  test("are counted by operation and result, and timed", async () => {
    const place = await world.openPlace();
    const names = ["providers_calls_total", "providers_call_duration_seconds_count"];
    const grown = await growth(names, async () => {
      const configId = await world.addSandboxConfig(place);
      // The amounts select scenarios of the sandbox provider: approve, provider_down, refuse, garbage.
      for (const amount of [1_250, 1_213, 1_216, 1_217]) {
        await world.askProvider(place, configId, await world.openIntent(place, amount));
      }
    });
    expect(grown).toMatchObject({
      "providers_calls_total account_open answered": 1,
      "providers_call_duration_seconds_count account_open": 1,
      "providers_calls_total payment_create answered": 1,
      "providers_calls_total payment_create provider_unavailable": 1,
      "providers_calls_total payment_create provider_refused": 1,
      "providers_calls_total payment_create provider_answer_invalid": 1,
      "providers_call_duration_seconds_count payment_create": 4,
    });
    // A request that may have taken effect is cancelled at the provider.
    await comes("providers_calls_total", { operation: "payment_cancel" }, 2);
  });
});

describe("tasks", () => {
  test("are counted by kind and outcome, and attempts that are retried too", async () => {
    const { place, configId } = await addScheme();
    const intent = await world.openIntent(place, 1_250);
    world.stations.collect(intent);
    let tries = 0;
    world.stations.answer(intent.intentId, "provider_confirm", () => {
      tries += 1;
      return tries > 1 ? { ok: true, type: "accepted" } : { ok: false, code: "settlement_in_progress" };
    });
    await world.askProvider(place, configId, intent);
    const names = ["providers_tasks_total"];
    const confirmed = await growth(names, async () => {
      await notify(configId, paidBody(await moneyOf(intent.intentId, "T-20")));
      await waitFor("the task's end", async () => await outcomeOf(intent.intentId, "confirm"));
    });
    expect(confirmed).toMatchObject({
      "providers_tasks_total confirm postponed": 1,
      "providers_tasks_total confirm settled": 1,
    });
    const failed = await growth(names, async () => {
      // The task lacks the required reason, so the attempt throws.
      await world.database`insert into provider_tasks (intent_id, kind) values (${intent.intentId}, 'fail')`;
      await comes("providers_tasks_total", { kind: "fail", outcome: "failed" }, 1);
      await world.database`
        update provider_tasks set detail = '{"reason": "payment_declined"}'
        where intent_id = ${intent.intentId} and kind = 'fail'`;
      await waitFor("the task's end", async () => await outcomeOf(intent.intentId, "fail"));
    });
    expect(failed).toMatchObject({ "providers_tasks_total fail payment_declined": 1 });
    expect(failed["providers_tasks_total fail failed"]).toBeGreaterThanOrEqual(1);
  });

  test("that are due without a worker are reported with the age of the oldest, until they are done", async () => {
    const { place, configId } = await addScheme();
    const intent = await world.openIntent(place, 1_250);
    await world.askProvider(place, configId, intent);
    const idle = await comes("providers_tasks_oldest_due_age_seconds", {}, 0);
    expect(metricSum(idle, "providers_tasks_due")).toBe(0);
    const { intentId } = intent;
    await world.database`
      insert into provider_tasks (intent_id, kind, due_at) values (${intentId}, 'clear', now() + interval '1 second')`;
    await world.database.begin(async (sql) => {
      // A worker that claims a task writes its row. The lock allows reads and prevents writes.
      await sql`lock table provider_tasks in share mode`;
      const series = await comes("providers_tasks_oldest_due_age_seconds", {}, 0.5);
      expect(metricSum(series, "providers_tasks_due")).toBe(1);
      expect(metricSum(series, "providers_oldest_confirmation_age_seconds")).toBe(0);
      expect(metricSum(series, "providers_tasks_oldest_due_age_seconds")).toBeLessThan(20);
    });
    await waitFor("the task's end", async () => await outcomeOf(intentId, "clear"));
    const done = await world.scrape();
    expect(metricSum(done, "providers_tasks_due")).toBe(0);
    expect(metricSum(done, "providers_tasks_oldest_due_age_seconds")).toBe(0);
  });

  test("that confirm a payment are reported from when they were stored, also while they are postponed", async () => {
    const { place, configId } = await addScheme();
    const intent = await world.openIntent(place, 1_250);
    await world.askProvider(place, configId, intent);
    const oldest = async () => metricSum(await world.scrape(), "providers_oldest_confirmation_age_seconds");
    expect(await oldest()).toBe(0);
    const { intentId } = intent;
    await world.database`
      insert into provider_tasks (intent_id, kind, created_at, due_at)
      values (${intentId}, 'confirm', now() - interval '1 hour', now() + interval '1 minute')`;
    expect(await oldest()).toBeGreaterThanOrEqual(3_600);
    await world.database`update provider_tasks set done_at = now() where intent_id = ${intentId} and kind = 'confirm'`;
    expect(await oldest()).toBe(0);
  });
});

function prefixed(name: string, values: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(values).map(([label, value]) => [`${name} ${label}`, value]));
}
