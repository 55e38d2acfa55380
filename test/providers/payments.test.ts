/** Requests to a provider: one for each intent, within a deadline, with any answer; and the end of an intent. */

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { headers } from "nats";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import * as configMessages from "../../services/bus/messages/provider-configs.ts";
import * as paymentMessages from "../../services/bus/messages/provider-payments.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { startProvidersService } from "../../services/providers/service.ts";
import { nextPollInMs } from "../../services/providers/tasks.ts";
import { createLog } from "../../services/runtime/log.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { waitFor } from "../support/wait-for.ts";
import { newKey, type ProvidersWorld, refusalOf, startProvidersWorld, untilFrozen } from "./providers-world.ts";

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

/** Sends the correct answer about a payment, with this HTTP status. */
async function answerRightly(request: IncomingMessage, response: ServerResponse, status: number): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const { reference, amount, currency } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  const body = { payment_id: "p", reference, account: "a", amount, currency, status: "pending", qr_payload: "qr" };
  response.writeHead(status, { location: "http://127.0.0.1:1/" }).end(JSON.stringify(body));
}

/** The headers of a message that deletes a switch. */
function deletion() {
  const made = headers();
  made.set("KV-Operation", "DEL");
  return made;
}

const taskOf = async (intentId: number, kind: string) => {
  const [row] = await world.database<{ outcome: string | null; due_in_ms: number }[]>`
    select outcome, (extract(epoch from due_at - now()) * 1000)::float8 as due_in_ms from provider_tasks
    where intent_id = ${intentId} and kind = ${kind}`;
  return row;
};

describe("the creation of a payment", () => {
  test("twenty requests at once: one payment, and the same answer for all, also after a restart", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1203);
    await world.addProviders();
    const answers = await Promise.all(Array.from({ length: 20 }, () => world.askProvider(place, configId, intent)));
    expect(answers[0]).toMatchObject({ created: true });
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    await world.restartProviders();
    expect(await world.askProvider(place, configId, intent)).toEqual(answers[0]);
    const made = await world.database`select 1 from sandbox_provider_payments`;
    expect(made).toHaveLength(1);
  });

  test("the same intent with another amount or deadline, or after its end: refused, because a lost log has created it again", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1203);
    const { intentId, expiresAtMs } = intent;
    expect(await world.askProvider(place, configId, intent)).toMatchObject({ created: true });
    for (const changed of [{ amountMinor: "1300" }, { expiresAtMs: expiresAtMs + 1 }]) {
      const again = world.askProvider(place, configId, { ...intent, ...changed });
      expect(await refusalOf(again)).toMatchObject({ code: "conflict" });
    }
    expect(await world.askProvider(place, configId, intent)).toMatchObject({ created: true });
    await world.ask(paymentMessages.withdrawProviderPayment, { intentId });
    expect(await refusalOf(world.askProvider(place, configId, intent))).toMatchObject({ code: "conflict" });
  });

  test.each([
    ["some time ago", "- interval '1 second'"],
    // The time left is shorter than a call may take.
    ["only now", "+ interval '1.5 seconds'"],
  ])(
    "a process died during its request, whose time ended %s: the next request uses the same reference",
    async (_, after) => {
      const place = await world.openPlace();
      const configId = await world.addSandboxConfig(place);
      const intent = await world.openIntent(place, 1203);
      const reference = `LEFTBEHIND${intent.intentId}`;
      // The row of a killed process, which has no answer.
      await world.database`
      insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference,
        account, amount_minor, currency, expires_at, asked_until)
      select ${intent.intentId}, ${configId}, ${place.organizationId}, ${place.stationId}, ${intent.orderDisplayNumber},
        ${reference}, settings ->> 'account', ${intent.amountMinor}::bigint, 'EUR', ${new Date(intent.expiresAtMs)},
        now() ${world.database.unsafe(after)}
      from provider_configs where config_id = ${configId}`;
      expect(await world.askProviderOnce(place, configId, intent)).toMatchObject({ created: true });
      const made = await world.database`select 1 from sandbox_provider_payments where reference = ${reference}`;
      expect(made).toHaveLength(1);
    },
  );

  test("a request that fails in our service: the next one is sent at once, and succeeds", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1203);
    const spoil = () =>
      world.database`update provider_secrets set sealed = set_byte(sealed, 0, get_byte(sealed, 0) # 1) where config_id = ${configId}`;
    await spoil();
    const failed = world.askProviderOnce(place, configId, intent);
    await expect(failed).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    await spoil();
    const startedAtMs = Date.now();
    expect(await world.askProvider(place, configId, intent)).toMatchObject({ created: true });
    expect(Date.now() - startedAtMs).toBeLessThan(2_000);
  });

  test("a config that is unknown, of another organization, of another mode or disabled: provider_not_configured", async () => {
    const place = await world.openPlace();
    const other = await world.openPlace();
    const live = await world.openPlace({ isSandbox: false });
    const configId = await world.addSandboxConfig(place);
    const asked = (from: typeof place, id: number) =>
      world.openIntent(from, 1250).then((intent) => world.askProvider(from, id, intent));
    const refused = { created: false, reason: "provider_not_configured" };
    expect(await asked(place, 999_999)).toEqual(refused);
    expect(await asked(other, configId)).toEqual(refused);
    expect(await asked(live, await world.addSandboxConfig(live))).toEqual(refused);
    await world.ask(configMessages.changeProviderConfig, { caller: place.owner, configId, status: "disabled" });
    expect(await asked(place, configId)).toEqual(refused);
  });

  test("a config whose kill switch is on: provider_frozen, and the provider is not asked", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const flip = (isOn: boolean) =>
      world.bus.js.publish(`$KV.SWITCHES.provider.${configId}`, isOn ? "{}" : "", isOn ? {} : { headers: deletion() });
    await flip(true);
    await untilFrozen(world, place, configId);
    await flip(false);
    await waitFor("the switch back", async () => {
      const answer = await world.askProvider(place, configId, await world.openIntent(place, 1203));
      return answer.created;
    });
  });
});

describe("a provider that misbehaves", () => {
  const behave: { listener: RequestListener } = { listener: (_request, response) => response.end() };
  const server = createServer((request, response) => behave.listener(request, response));
  let bad: ProvidersWorld;
  beforeAll(async () => {
    bad = await startProvidersWorld();
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await bad.stop();
  });

  test.each<[string, RequestListener, string]>([
    ["answers 500", (_q, r) => r.writeHead(500).end("{}"), "provider_unavailable"],
    ["redirects, with a correct body", (q, r) => void answerRightly(q, r, 307), "provider_answer_invalid"],
    ["answers no JSON", (_q, r) => r.end("<html>"), "provider_answer_invalid"],
    ["answers JSON of another shape", (_q, r) => r.end('{"qr":"x"}'), "provider_answer_invalid"],
    [
      "answers with more bytes than the bound",
      (_q, r) => void r.write("x".repeat(PROVIDER_LIMITS.answerBytes + 1)),
      "provider_answer_invalid",
    ],
    ["refuses", (_q, r) => r.writeHead(422).end("{}"), "provider_refused"],
    ["hangs up", (_q, r) => r.destroy(), "provider_unavailable"],
    [
      "answers about another payment",
      (_q, r) =>
        r.end(
          JSON.stringify({
            payment_id: "p",
            reference: "another",
            account: "a",
            amount: "1",
            currency: "EUR",
            status: "pending",
            qr_payload: "qr",
          }),
        ),
      "provider_answer_invalid",
    ],
    ["drips", (_q, r) => void setInterval(() => r.write(" "), 500).unref(), "provider_timed_out"],
  ])("%s", async (_name, listener, reason) => {
    const place = await bad.openPlace();
    const configId = await bad.addSandboxConfig(place);
    const intent = await bad.openIntent(place, 1250);
    const { port } = server.address() as AddressInfo;
    bad.environment["SANDBOX_PROVIDER_URL"] = `http://127.0.0.1:${port}`;
    await bad.restartProviders();
    behave.listener = listener;
    const startedAtMs = Date.now();
    // The config was created at the real sandbox provider. Only the address differs now.
    expect(await bad.askProvider(place, configId, intent)).toEqual({ created: false, reason });
    expect(Date.now() - startedAtMs).toBeLessThan(PROVIDER_LIMITS.createTotalMs);
    const polls =
      await bad.database`select outcome from provider_tasks where kind = 'poll' and intent_id = ${intent.intentId}`;
    expect(polls, "there is nothing to poll").toEqual([{ outcome: reason }]);
    // The service keeps this answer as final.
    behave.listener = (_request, response) => response.destroy();
    expect(await bad.askProvider(place, configId, intent)).toEqual({ created: false, reason });
    bad.environment["SANDBOX_PROVIDER_URL"] = bad.sandboxUrl;
    await bad.restartProviders();
  });
});

describe("the end of an intent", () => {
  test("the service cancels the payment at the provider, and notifies the station that no money moved", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1203);
    await world.askProvider(place, configId, intent);
    await world.ask(paymentMessages.withdrawProviderPayment, { intentId: intent.intentId });
    await world.ask(paymentMessages.withdrawProviderPayment, { intentId: intent.intentId });
    await waitFor("the command to the station", () => world.stations.about(intent.intentId).length > 0);
    expect(world.stations.about(intent.intentId).map(({ command }) => command)).toEqual([
      { type: "provider_cleared", intentId: intent.intentId },
    ]);
    expect(await taskOf(intent.intentId, "poll")).toMatchObject({ outcome: "cancelled" });
    const [made] = await world.database`select p.status from sandbox_provider_payments p
      join provider_payments o on o.reference = p.reference where o.intent_id = ${intent.intentId}`;
    expect(made).toEqual({ status: "cancelled" });
  });

  test("an intent without a payment at a provider: withdrawn without a report", async () => {
    expect(await world.ask(paymentMessages.withdrawProviderPayment, { intentId: 987_654 })).toEqual({});
  });

  test("an intent that ends before the request: no provider is asked, also after a restart", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1203);
    await world.ask(paymentMessages.withdrawProviderPayment, { intentId: intent.intentId });
    await world.ask(paymentMessages.withdrawProviderPayment, { intentId: intent.intentId });
    await world.restartProviders();
    expect(await refusalOf(world.askProvider(place, configId, intent))).toMatchObject({ code: "conflict" });
    const asked = await world.database`select 1 from provider_payments where intent_id = ${intent.intentId}`;
    expect(asked).toHaveLength(0);
  });

  test("an end and the request at once: no payable payment remains", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intents = await Promise.all(Array.from({ length: 12 }, () => world.openIntent(place, 1203)));
    await Promise.all(
      intents.flatMap((intent) => [
        world.askProvider(place, configId, intent).catch((error: unknown) => error),
        world.ask(paymentMessages.withdrawProviderPayment, { intentId: intent.intentId }),
      ]),
    );
    const ids = intents.map(({ intentId }) => intentId);
    await waitFor("nothing is payable", async () => {
      const rows = await world.database`
        select 1 from sandbox_provider_payments s join provider_payments p using (reference)
        where p.intent_id = any(${ids}::bigint[]) and s.status <> 'cancelled'`;
      return rows.length === 0;
    });
  });

  test("the request had no answer and is not repeated: the payment is polled and withdrawn", async () => {
    const dying = await world.openPlace();
    const configId = await world.addSandboxConfig(dying);
    const intent = await world.openIntent(dying, 1203);
    const spoil = () =>
      world.database`update provider_secrets set sealed = set_byte(sealed, 0, get_byte(sealed, 0) # 1) where config_id = ${configId}`;
    await spoil();
    await world.askProviderOnce(dying, configId, intent).catch(() => undefined);
    await spoil();
    // The failed request leaves the row as a process does that dies during its request.
    const [row] = await world.database`select status from provider_payments where intent_id = ${intent.intentId}`;
    expect(row).toEqual({ status: "asked" });
    await world.database`
      update provider_payments set expires_at = now() - interval '10 seconds' where intent_id = ${intent.intentId}`;
    await world.database`update provider_tasks set due_at = now() where intent_id = ${intent.intentId}`;
    await waitFor("it is withdrawn", async () => (await taskOf(intent.intentId, "withdraw"))?.outcome === "cancelled");
  });

  test("a decline after the intent's end: reports that no money moved", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1201);
    const refusal = { ok: false, code: "intent_not_actionable", status: "expired" } as const;
    world.stations.answer(intent.intentId, "provider_failed", refusal);
    await world.askProvider(place, configId, intent);
    await waitFor("the commands to the station", () => world.stations.about(intent.intentId).length === 2);
    const received = world.stations.about(intent.intentId).map(({ command }) => command.type);
    expect(received).toEqual(["provider_failed", "provider_cleared"]);
  });

  test.each([
    ["provider_money_differs", "differ", { issues: [{ issue: "amount_over", issueId: 1, nth: "1" }] }, "notified"],
    ["provider_failed", "fail", { reason: "payment_declined" }, "payment_declined"],
    ["provider_cleared", "clear", {}, "cleared"],
  ] as const)("the bus has lost the station: it gets %s once it is restored", async (type, kind, detail, outcome) => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1203);
    const { intentId } = intent;
    await world.askProvider(place, configId, intent);
    const commands = () => world.stations.about(intentId).length;
    world.stations.answer(intentId, type, () =>
      commands() > 1 ? { ok: true, type: "accepted" } : { ok: false, code: "station_unknown" },
    );
    await world.database`update provider_payments set ended_at = now() where intent_id = ${intentId}`;
    await world.database`
      insert into provider_tasks (intent_id, kind, detail) values (${intentId}, ${kind}, ${world.database.json(detail)})`;
    await waitFor("the task's end", async () => (await taskOf(intentId, kind))?.outcome === outcome);
    expect(world.stations.about(intentId).map(({ command }) => command.type)).toEqual([type, type]);
  });

  test("after the deadline, without a withdrawal: the service polls again and clears the station", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intent = await world.openIntent(place, 1203);
    await world.askProvider(place, configId, intent);
    const poll = await taskOf(intent.intentId, "poll");
    expect(poll?.due_in_ms).toBeGreaterThan(PROVIDER_LIMITS.firstPollMs - 2_000);
    expect(poll?.due_in_ms).toBeLessThanOrEqual(PROVIDER_LIMITS.firstPollMs);
    // The deadline has passed, and the provider still answers pending.
    await world.database`
      update provider_payments set expires_at = now() - interval '10 seconds' where intent_id = ${intent.intentId}`;
    await world.database`update provider_tasks set due_at = now() where intent_id = ${intent.intentId}`;
    await waitFor("the command to the station", () => world.stations.about(intent.intentId).length > 0);
    expect(world.stations.about(intent.intentId)[0]?.command.type).toBe("provider_cleared");
    expect(await taskOf(intent.intentId, "poll")).toMatchObject({ outcome: expect.any(String) });
  });

  test("a task whose worker died: it is due again, and one of several processes works on it", async () => {
    await world.addProviders();
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    const intents = await Promise.all(Array.from({ length: 20 }, () => world.openIntent(place, 1203)));
    // Like the host, the test repeats a request that has no answer in time.
    const ask = (intent: (typeof intents)[number]) =>
      vi.waitFor(() => world.askProvider(place, configId, intent), { timeout: 30_000, interval: 50 });
    await Promise.all(intents.map(ask));
    const ids = intents.map(({ intentId }) => intentId);
    // The tasks of workers that died were claimed once, and the claim has ended.
    await world.database`
      update provider_tasks set due_at = now() - interval '1 second', attempts = 1
      where kind = 'poll' and intent_id = any(${ids}::bigint[])`;
    const polled = await waitFor("each was polled", async () => {
      const rows = await world.database<{ attempts: number }[]>`
        select attempts from provider_tasks
        where kind = 'poll' and intent_id = any(${ids}::bigint[]) and attempts > 1
          and due_at between now() and now() + interval '12 seconds'`;
      return rows.length === ids.length && rows;
    });
    expect(polled.map(({ attempts }) => attempts)).toEqual(ids.map(() => 2));
  });

  test("the pauses between polls grow, are bounded, and end with one poll after the deadline", () => {
    const nowMs = 1_000_000;
    const far = nowMs + 1_000_000;
    const pauses = [1, 2, 3, 4, 5, 40].map((attempts) => nextPollInMs(attempts, far, nowMs));
    expect(pauses).toEqual([7_500, 11_250, 16_875, 25_312.5, 30_000, 30_000]);
    expect(nextPollInMs(5, nowMs + 1_200, nowMs)).toBe(1_200);
    expect(nextPollInMs(5, nowMs - 1, nowMs)).toBe(0);
  });

  test("any deadline: one poll after it, and none between the two", () => {
    const { firstPollMs, pollAfterDeadlineMs } = PROVIDER_LIMITS;
    for (let deadlineMs = 30_000; deadlineMs <= 300_000; deadlineMs += 500) {
      const lastAtMs = deadlineMs + pollAfterDeadlineMs;
      const pollTimes: number[] = [firstPollMs];
      for (let atMs = firstPollMs; atMs < lastAtMs; pollTimes.push(atMs))
        atMs += nextPollInMs(pollTimes.length, lastAtMs, atMs);
      expect(pollTimes.filter((atMs) => atMs > deadlineMs)).toEqual([lastAtMs]);
    }
  });
});

test("a start without a key: refused in one sentence without the value", async () => {
  const log = createLog({ service: "test", level: "silent" });
  const settings = {
    natsUrl: world.natsUrl,

    databaseUrl: world.databaseUrl,
    logLevel: "silent",
  } as const;
  const start = (environment: NodeJS.ProcessEnv) =>
    startProvidersService({ bus: world.bus, logs: ONE_LOG, log, settings, environment });
  for (const [environment, begin] of [
    [{}, "Set PROVIDER_SECRETS_KEY"],
    [{ PROVIDER_SECRETS_KEY: "too-short-to-be-a-key" }, "The setting PROVIDER_SECRETS_KEY is not usable"],
  ] as const) {
    await expect(start(environment)).rejects.toMatchObject({
      name: "UserError",
      code: "invalid_setting",
      message: `${begin}: it must be 32 random bytes in base64url (43 characters).`,
    });
  }
  // Not the key that sealed the secrets.
  await world.addSandboxConfig(await world.openPlace());
  await expect(start({ ...world.environment, PROVIDER_SECRETS_KEY: newKey() })).rejects.toMatchObject({
    name: "UserError",
    code: "provider_secrets_key_unknown",
  });
});
