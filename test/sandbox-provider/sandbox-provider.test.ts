/** The sandbox provider alone, over HTTP as any client calls it. */

import { createHmac } from "node:crypto";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { ServiceDeps } from "../../services/runtime/service.ts";
import { SANDBOX_LIMITS } from "../../services/sandbox-provider/limits.ts";
import { startSandboxProviderService } from "../../services/sandbox-provider/service.ts";
import { newKey } from "../providers/providers-world.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";
import { waitFor } from "../support/wait-for.ts";

interface Seen {
  readonly body: string;
  readonly signature: string;
}

let nats: TestServer;
let database: TestDatabase;
let bus: Bus;
let deps: ServiceDeps;
let provider: Awaited<ReturnType<typeof startSandboxProviderService>>;
const seen: Seen[] = [];
let status = 200;
/** The merchant answers each callback after this time. */
let answerAfterMs = 0;
const merchant = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    seen.push({
      body: Buffer.concat(chunks).toString("utf8"),
      signature: String(request.headers["x-provider-signature"]),
    });
    setTimeout(() => response.writeHead(status).end(), answerAfterMs);
  });
});

beforeAll(async () => {
  [nats, database] = await Promise.all([startNats(), cloneDatabase()]);
  const log = createLog({ service: "test", level: "silent" });
  bus = await connectBus({ url: nats.url, name: "test", log });
  await new Promise<void>((resolve) => {
    merchant.listen(0, "127.0.0.1", resolve);
  });
  const { port } = merchant.address() as AddressInfo;
  const settings = { natsUrl: nats.url, databaseUrl: database.url, logLevel: "silent" } as const;
  const environment = {
    SANDBOX_PROVIDER_KEY: newKey(),
    SANDBOX_PROVIDER_INSTALLATION_KEY: newKey(),
    SANDBOX_PROVIDER_PORT: "0",
    SANDBOX_PROVIDER_DECIDES_AFTER_MS: "50",
    PROVIDER_CALLBACK_BASE_URL: `http://127.0.0.1:${port}`,
  };
  deps = { bus, logs: ONE_LOG, log, settings, environment };
  provider = await startSandboxProviderService(deps);
});
afterAll(async () => {
  await provider.stop();
  merchant.closeAllConnections();
  merchant.close();
  await bus.close();
  await Promise.all([nats.stop(), database.drop()]);
});

const callbackUrl = (): string => `${String(deps.environment["PROVIDER_CALLBACK_BASE_URL"])}/callback/`;

async function ask(method: string, path: string, body?: unknown, apiKey?: string, more: Record<string, string> = {}) {
  const response = await fetch(provider.url + path, {
    method,
    headers: { ...more, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    redirect: "manual",
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type") === "application/json";
  return { status: response.status, text, headers: response.headers, json: isJson ? JSON.parse(text) : undefined };
}

interface Account {
  readonly account: string;
  readonly api_key: string;
  readonly callback_secret: string;
}

const installationKey = (): string => String(deps.environment["SANDBOX_PROVIDER_INSTALLATION_KEY"]);

async function openAccount(): Promise<Account> {
  const answer = await ask("POST", "/v1/accounts", { name: "Bistro" }, installationKey());
  expect(answer.status).toBe(201);
  return answer.json;
}

let references = 0;
const payment = (more: object = {}) => ({
  reference: `R${(references += 1)}`,
  amount: "12.50",
  currency: "EUR",
  description: "Order 7",
  expires_at: new Date(Date.now() + 60_000).toISOString(),
  callback_url: callbackUrl(),
  ...more,
});

const callbacksOf = (reference: string): Seen[] =>
  seen.filter(({ body }) => JSON.parse(body).payment.reference === reference);

function isSigned({ body, signature }: Seen, secret: string): boolean {
  const timestamp = /t=(\d+)/.exec(signature)?.[1] ?? "";
  return signature.includes(createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex"));
}

describe("a payment", () => {
  test("is made once per reference, ends automatically, and notifies the merchant with a signature", async () => {
    const { api_key: key, account, callback_secret: secret } = await openAccount();
    const asked = payment();
    const made = await ask("POST", "/v1/payments", asked, key);
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({
      reference: asked.reference,
      account,
      amount: "12.50",
      currency: "EUR",
      status: "pending",
    });
    const again = await ask("POST", "/v1/payments", asked, key);
    expect(again.status).toBe(200);
    expect(again.json.payment_id).toBe(made.json.payment_id);
    const other = await ask("POST", "/v1/payments", { ...asked, amount: "13.50" }, key);
    expect([other.status, other.json.error.code]).toEqual([409, "reference_taken"]);
    const [callback] = await waitFor(
      "a callback",
      () => callbacksOf(asked.reference).length > 0 && callbacksOf(asked.reference),
    );
    if (callback === undefined) throw new Error("There is no callback.");
    expect(isSigned(callback, secret)).toBe(true);
    expect(isSigned(callback, "another")).toBe(false);
    expect(JSON.parse(callback.body)).toMatchObject({ event_type: "payment.paid", payment: { status: "paid" } });
    const read = await ask("GET", `/v1/payments/by-reference/${asked.reference}`, undefined, key);
    expect(read.json).toEqual(JSON.parse(callback.body).payment);
  });

  test("a clock of the provider's machine an hour ahead: made, and signed with the time of the database", async () => {
    const { api_key: key } = await openAccount();
    const asked = payment();
    const rightMs = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: rightMs + 3_600_000 });
    try {
      expect((await ask("POST", "/v1/payments", asked, key)).status).toBe(201);
      await expect.poll(() => callbacksOf(asked.reference)).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
    const [{ signature, body }] = callbacksOf(asked.reference) as [Seen];
    const signedMs = 1_000 * Number(/t=(\d+)/.exec(signature)?.[1]);
    const occurredMs = Date.parse(JSON.parse(body).occurred_at);
    for (const ms of [signedMs, occurredMs]) expect(Math.abs(ms - rightMs)).toBeLessThan(60_000);
  });

  test("any deviation from the documentation: refused with a clear error", async () => {
    const { api_key: key } = await openAccount();
    const wrongs: [object | string, number, string][] = [
      [payment({ amount: 12.5 }), 422, "amount"],
      [payment({ amount: "12.505" }), 422, "amount"],
      [payment({ currency: "EURO" }), 422, "currency"],
      [payment({ currency: "XYZ" }), 422, "amount"],
      [payment({ reference: "a b" }), 422, "reference"],
      [payment({ expires_at: "tomorrow" }), 422, "expires_at"],
      [payment({ expires_at: new Date(Date.now() - 1_000).toISOString() }), 422, "expires_at"],
      [payment({ callback_url: "http://127.0.0.1:1/" }), 422, "callback_url"],
      [payment({ callback_url: "http://169.254.169.254/latest" }), 422, "callback_url"],
      [payment({ tip: "1.00" }), 422, ""],
      ["no json", 400, ""],
      ["x".repeat(SANDBOX_LIMITS.bodyBytes + 1), 413, ""],
    ];
    for (const [body, expected, field] of wrongs) {
      const answer = await ask("POST", "/v1/payments", body, key);
      expect(answer.status, answer.text).toBe(expected);
      if (field !== "") expect(answer.json.error.errors[0].field).toBe(field);
    }
    expect((await ask("POST", "/v1/payments", payment())).status).toBe(401);
    expect((await ask("POST", "/v1/payments", payment(), "sbx_wrong")).status).toBe(401);
    expect((await ask("GET", "/v1/nothing", undefined, key)).status).toBe(404);
    expect((await ask("GET", "/v1/payments/by-reference/NONE", undefined, key)).status).toBe(404);
  });

  test("a reference that is cancelled before its payment is made: the payment is refused", async () => {
    const { api_key: key } = await openAccount();
    const asked = payment();
    const cancelled = await ask("POST", `/v1/payments/by-reference/${asked.reference}/cancel`, {}, key);
    expect([cancelled.status, cancelled.json.status]).toEqual([200, "cancelled"]);
    expect((await ask("POST", "/v1/payments", asked, key)).status).toBe(409);
  });

  test("a payment of another account: cannot be seen or cancelled, and is not in the statement", async () => {
    const [mine, other] = [await openAccount(), await openAccount()];
    const asked = payment({ amount: "12.03" });
    await ask("POST", "/v1/payments", asked, mine.api_key);
    expect((await ask("GET", `/v1/payments/by-reference/${asked.reference}`, undefined, other.api_key)).status).toBe(
      404,
    );
    await ask("POST", `/v1/payments/by-reference/${asked.reference}/cancel`, {}, other.api_key);
    const read = await ask("GET", `/v1/payments/by-reference/${asked.reference}`, undefined, mine.api_key);
    expect(read.json.status).toBe("pending");
  });
});

describe("the guest page", () => {
  test.each([
    ["approve", "paid"],
    ["decline", "declined"],
    ["cancel", "cancelled"],
  ])("the button %s makes the payment %s, once", async (decision, ends) => {
    const { api_key: key } = await openAccount();
    const asked = payment({ amount: "12.03", description: '<b>"Soup"</b> & bread' });
    const made = await ask("POST", "/v1/payments", asked, key);
    const path = new URL(made.json.qr_payload).pathname;
    const page = await ask("GET", path);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.text).toContain("12.03 EUR");
    expect(page.text).not.toContain("<b>");
    for (const name of ["approve", "decline", "cancel"]) expect(page.text).toContain(`value="${name}"`);
    const decided = await ask("POST", path, `decision=${decision}`);
    expect([decided.status, decided.headers.get("location")]).toEqual([303, path]);
    await ask("POST", path, "decision=approve");
    const read = await ask("GET", `/v1/payments/by-reference/${asked.reference}`, undefined, key);
    expect(read.json.status).toBe(ends);
    expect((await ask("GET", path)).text).not.toContain("<button");
    await waitFor("a callback", () => callbacksOf(asked.reference).length === 1);
    expect((await ask("POST", path, "decision=steal")).status).toBe(422);
    expect((await ask("GET", "/pay/pay_unknown")).status).toBe(404);
  });
});

describe("a decision", () => {
  const decide = async (headers: Record<string, string>) => {
    const { api_key: key } = await openAccount();
    const asked = payment({ amount: "12.03" });
    const made = await ask("POST", "/v1/payments", asked, key);
    const path = new URL(made.json.qr_payload).pathname;
    const { status: answered } = await ask("POST", path, "decision=approve", undefined, headers);
    const read = await ask("GET", `/v1/payments/by-reference/${asked.reference}`, undefined, key);
    return [answered, read.json.status];
  };

  test.each([
    { origin: "https://shop.example" },
    { origin: "http://127.0.0.1:1" },
    { origin: "null" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { origin: "https://shop.example", "sec-fetch-site": "same-origin" },
  ])("from a page of another site: refused: %o", async (headers) => {
    expect(await decide(headers)).toEqual([403, "pending"]);
  });

  test("from the page itself, or from no page: accepted; and no other site may show the page in a frame", async () => {
    expect(await decide({ origin: provider.url, "sec-fetch-site": "same-origin" })).toEqual([303, "paid"]);
    expect(await decide({ "sec-fetch-site": "same-origin" })).toEqual([303, "paid"]);
    expect(await decide({})).toEqual([303, "paid"]);
    const { api_key: key } = await openAccount();
    const made = await ask("POST", "/v1/payments", payment({ amount: "12.03" }), key);
    const page = await ask("GET", new URL(made.json.qr_payload).pathname);
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    // With `no-referrer` a browser would call the origin of the page's own form null.
    expect(page.headers.get("referrer-policy")).toBe("same-origin");
  });
});

describe("an account", () => {
  test("is opened with the installation's key only", async () => {
    for (const key of [undefined, "", "wrong", `${installationKey()}x`, (await openAccount()).api_key]) {
      const answer = await ask("POST", "/v1/accounts", { name: "Mallory" }, key);
      expect([answer.status, answer.json.error.code]).toEqual([401, "installation_key_invalid"]);
    }
  });

  test("is not opened beyond the bound, however many ask at once", async () => {
    const sql = openDatabase({ url: database.url, maxConnections: 1 });
    try {
      const left = 5;
      await sql`
        insert into sandbox_provider_accounts (account_id, name, api_key_hash)
        select 'filler_' || n, 'Filler', sha256(('filler ' || n)::bytea)
        from generate_series(1, ${SANDBOX_LIMITS.accounts - left} - (select count(*) from sandbox_provider_accounts)) n`;
      const opened = await Promise.all(
        Array.from({ length: 40 }, () => ask("POST", "/v1/accounts", { name: "Bistro" }, installationKey())),
      );
      expect(opened.filter((answer) => answer.status === 201)).toHaveLength(left);
      expect(opened.filter((answer) => answer.json.error?.code === "too_many_accounts")).toHaveLength(40 - left);
    } finally {
      await sql`delete from sandbox_provider_accounts where account_id like 'filler%'`;
      await closeDatabase(sql);
    }
  });
});

test("a request target that is no path: not found", async () => {
  const { hostname, port } = new URL(provider.url);
  for (const path of ["//", "//x:y/", "http://elsewhere.invalid/healthz", "*"]) {
    const answered = await new Promise<number | undefined>((resolve, reject) => {
      get({ hostname, port, path }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).on("error", reject);
    });
    expect([path, answered]).toEqual([path, 404]);
  }
});

describe("callbacks", () => {
  test("one payment: each callback comes after the answer to the previous one", async () => {
    const { api_key: key } = await openAccount();
    answerAfterMs = 2 * SANDBOX_LIMITS.callbackGapMs;
    // This amount gives the callback of the payment, then an older decline and an event of an unknown kind.
    const asked = payment({ amount: "10.18" });
    await ask("POST", "/v1/payments", asked, key);
    const [first] = await waitFor("the first one", () => {
      const come = callbacksOf(asked.reference);
      return come.length > 0 && come;
    });
    expect(JSON.parse(first?.body ?? "{}").event_type).toBe("payment.paid");
    await new Promise((resolve) => setTimeout(resolve, 1.5 * SANDBOX_LIMITS.callbackGapMs));
    expect(callbacksOf(asked.reference)).toHaveLength(1);
    await waitFor("all of them", () => callbacksOf(asked.reference).length === 3);
    const types = callbacksOf(asked.reference).map(({ body }) => JSON.parse(body).event_type);
    expect(types).toEqual(["payment.paid", "payment.declined", "payment.scanned"]);
    answerAfterMs = 0;
  });

  test("are repeated with the same bytes until they are accepted, also after a restart", async () => {
    const { api_key: key, callback_secret: secret } = await openAccount();
    const asked = payment();
    status = 503;
    await ask("POST", "/v1/payments", asked, key);
    await waitFor("two attempts", () => callbacksOf(asked.reference).length >= 2);
    await provider.stop();
    const before = callbacksOf(asked.reference).length;
    provider = await startSandboxProviderService(deps);
    status = 200;
    await waitFor("another attempt", () => callbacksOf(asked.reference).length > before);
    const all = callbacksOf(asked.reference);
    expect(new Set(all.map(({ body }) => body)).size).toBe(1);
    expect(all.every((callback) => isSigned(callback, secret))).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(callbacksOf(asked.reference)).toHaveLength(all.length);
  });

  test("have signatures of both secrets during a renewal", async () => {
    const { api_key: key, callback_secret: old } = await openAccount();
    const renewed = await ask("POST", "/v1/account/callback-secret", {}, key);
    const next = renewed.json.callback_secret;
    expect(next).not.toBe(old);
    const asked = payment();
    await ask("POST", "/v1/payments", asked, key);
    const [callback] = await waitFor(
      "a callback",
      () => callbacksOf(asked.reference).length > 0 && callbacksOf(asked.reference),
    );
    if (callback === undefined) throw new Error("There is no callback.");
    expect([isSigned(callback, old), isSigned(callback, next)]).toEqual([true, true]);
  });
});

test("the statement has every paid payment once, in the order of its lines, as JSON and as CSV", async () => {
  const { api_key: key, account } = await openAccount();
  const wanted = Array.from({ length: 12 }, () => payment());
  await Promise.all([...wanted, payment({ amount: "12.01" })].map((asked) => ask("POST", "/v1/payments", asked, key)));
  await waitFor("twelve callbacks", () => wanted.every((asked) => callbacksOf(asked.reference).length > 0));
  const lines: { line: number; reference: string; amount: string }[] = [];
  let after: number | null = 0;
  while (after !== null) {
    const page: Awaited<ReturnType<typeof ask>> = await ask(
      "GET",
      `/v1/statement.json?after=${after}&limit=5`,
      undefined,
      key,
    );
    lines.push(...page.json.lines);
    after = page.json.next_after;
  }
  expect(lines.map(({ line }) => line)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
  expect(new Set(lines.map(({ reference }) => reference))).toEqual(new Set(wanted.map(({ reference }) => reference)));
  const csv = await ask("GET", "/v1/statement.csv?after=10", undefined, key);
  expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  const rows = csv.text.trimEnd().split("\r\n");
  expect(rows[0]).toBe("line,payment_id,reference,account,amount,currency,paid_at");
  expect(rows.slice(1).map((row) => row.split(",")[0])).toEqual(["11", "12"]);
  expect(rows[1]?.split(",")[3]).toBe(account);
  expect((await ask("GET", "/v1/statement.csv?after=10&limit=1", undefined, key)).headers.get("x-next-after")).toBe(
    "11",
  );
  expect((await ask("GET", "/v1/statement.json?limit=0", undefined, key)).status).toBe(422);
});

test("no key, or a used port: the provider does not start, and one sentence has the reason", async () => {
  const without = { ...deps, environment: { ...deps.environment, SANDBOX_PROVIDER_KEY: "" } };
  await expect(startSandboxProviderService(without)).rejects.toMatchObject({
    name: "UserError",
    code: "invalid_setting",
  });
  const { port } = new URL(provider.url);
  const taken = { ...deps, environment: { ...deps.environment, SANDBOX_PROVIDER_PORT: port } };
  await expect(startSandboxProviderService(taken)).rejects.toMatchObject({
    name: "UserError",
    code: "sandbox_provider_port_taken",
  });
});
