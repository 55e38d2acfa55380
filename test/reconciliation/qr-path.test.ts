/** QR payments, their callbacks and the provider's statement: each difference is one issue, found by a callback or by a run. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { send } from "../support/http.ts";
import { addOperator, logIn, newOrder, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

const SOON = { timeout: 20_000, interval: 100 };

interface Issue {
  readonly issue_id: number;
  readonly kind: string;
  readonly amount: string;
  readonly currency: string;
}

let system: TestSystem;
let database: Database;
let cashier: Person;
let operator: Person;
let station: string;
/** The sandbox's provider config, and its account at the provider. */
let config: { readonly config_id: number; readonly account: string };

beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  operator = await addOperator(system.baseUrl, owner);
  station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  const [found] = await database<(typeof config)[]>`
    select config_id::int, provider_account(kind, settings) as account from provider_configs
    where kind = 'sandbox' and organization_id = ${system.sandbox.organizationId}`;
  if (found === undefined) throw new Error("The sandbox has no provider.");
  config = found;
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

/** Collects a magic amount, and waits until the collection is paid or has its issue. */
async function collect(amount: string, isDone: (status: string, kinds: readonly string[]) => boolean): Promise<void> {
  const order_id = await newOrder(cashier, station, amount);
  const begun = { body: { order_id, route: "dynamic_qr" } };
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, begun);
  const path = `${station}/intents/${intent_id}/`;
  const status = await vi.waitFor(async () => {
    const intent = await cashier.good<{ status: string }>("GET", path);
    const kinds = (await issues()).map(({ kind }) => kind);
    expect(isDone(intent.status, kinds)).toBe(true);
    return intent.status;
  }, SOON);
  if (status !== "succeeded") await cashier.good("POST", `${path}cancel/`);
}

const issues = async (): Promise<readonly Issue[]> =>
  (await operator.good<{ issues: Issue[] }>("GET", "issues/")).issues;

/** The file as the provider's `GET /v1/statement.csv` returns it. */
async function statement(): Promise<string> {
  const rows = await database<{ row: string }[]>`
    select concat_ws(',', statement_line, payment_id, coalesce(asserted ->> 'reference', reference), account_id,
      coalesce(asserted ->> 'amount', (amount_minor / 100.0)::numeric(12, 2)::text), coalesce(asserted ->> 'currency', currency),
      to_char(decided_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as row
    from sandbox_provider_payments where account_id = ${config.account} and statement_line is not null order by statement_line`;
  const header = "line,payment_id,reference,account,amount,currency,paid_at";
  return `${[header, ...rows.map(({ row }) => row)].join("\r\n")}\r\n`;
}

describe("the statement of the sandbox provider", () => {
  test("matches the paid orders, and explains every other line by its callback's issue", async () => {
    await collect("12.50", (status) => status === "succeeded");
    await collect("12.07", (_, kinds) => kinds.includes("amount_over"));
    await collect("12.08", (_, kinds) => kinds.includes("currency_mismatch"));
    await collect("12.22", (status, kinds) => status === "succeeded" && kinds.includes("duplicate_money"));
    await collect("12.23", (status, kinds) => status === "succeeded" && kinds.includes("unmatched_money"));
    const before = await issues();
    expect(before).toHaveLength(4);
    const csv = await statement();
    const { config_id, account: reference } = config;
    const facts = { provider: "sandbox", reference, name: "QR", mode: "test", settlement_delay_days: 0 };
    const body = { ...facts, config_id };
    const { account_id } = await operator.good<{ account_id: number }>("POST", "accounts/", { body });

    const path = `/api/reconciliation/v1/accounts/${account_id}/imports/?file_name=s.csv&format=sandbox&encoding=utf-8`;
    const headers = { "content-type": "application/octet-stream" };
    expect(await send(system.baseUrl, "POST", path, { token: operator.token, body: csv, headers })).toMatchObject({
      status: 201,
    });

    await vi.waitFor(async () => {
      const { runs } = await operator.good<{ runs: object[] }>("GET", `runs/?account_id=${account_id}`);
      expect(runs).toMatchObject([{ status: "done", lines: 7, matched: 3, differing: 4, rejected: 0 }]);
    }, SOON);
    expect(await issues()).toEqual(before.map((issue) => ({ ...issue, last_seen_at: expect.any(String) as string })));
  });
});
