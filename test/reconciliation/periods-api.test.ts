/** Periods, closings and exports through a real gateway and a real service. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { writeRows } from "./closings/closing-world.ts";

const SCRIPT = join(import.meta.dirname, "..", "..", "clients", "verify-closing.mjs");
/** More than three pages of a list. */
const LINES = 1_700;

let system: TestSystem;
let database: Database;
let operator: Person;
let accountId: number;

beforeAll(async () => {
  system = await sharedSystem();
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  operator = await addOperator(system.baseUrl, owner);
  const facts = { provider: "bank", reference: "DE-1", name: "Bank", mode: "test" };
  const account = await operator.good<{ account_id: number }>("POST", "accounts/", { body: facts });
  accountId = account.account_id;
  await importFees();
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

/** Imports lines that need no decision. One text begins like a formula. */
async function importFees(): Promise<void> {
  const { organizationId } = system.sandbox;
  const hash = createHash("sha256").update("file").digest();
  await database`
    with f as (
      insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, format, format_version, encoding,
        status, uploaded_by, from_date, to_date)
      values (${organizationId}, ${accountId}, ${hash}, 'a.xml', 1, 'camt.053', 1, 'utf-8', 'imported', ${operator.userId},
        '2026-03-01', '2026-03-31') returning import_id
    ), l as (
      insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, kind, provider_type, amount_minor,
        currency, booked_on, provider_reference, payment_reference, merchant_reference, payout_reference, terminal, account, text)
      select ${organizationId}, ${accountId}, sha256(int8send(n)), 1, 'fee', 'FEES', -n, 'EUR', '2026-03-10', 'r-' || n,
        '', '', '', '', '', '=1+1' from generate_series(1, ${LINES}) as n returning line_id
    )
    insert into statement_line_sources (import_id, position, line_id)
    select import_id, row_number() over (), line_id from f, l`;
}

const day = { account_id: 0, kind: "day", from_date: "2026-03-10", reason: "All is decided." };

test("a day: ready once a run has compared it, closed, exported row by row, and verified offline", async () => {
  const query = `periods/?account_id=${accountId}&from_date=2026-03-10&to_date=2026-03-10`;
  const before = await operator.good<{ periods: { state: string; missing: { code: string }[] }[] }>("GET", query);
  expect(before.periods[0]).toMatchObject({ state: "open", missing: [{ code: "run_missing", count: LINES }] });
  await operator.good("POST", "runs/", { body: { account_id: accountId } });
  await expect
    .poll(async () => (await operator.good<typeof before>("GET", query)).periods[0]?.state, { timeout: 10_000 })
    .toBe("ready");
  const closing = await operator.good<{ closing_id: number; signature: { public_key: string } }>(
    "POST",
    "periods/close/",
    {
      body: { ...day, account_id: accountId },
    },
  );
  const rows: string[] = [];
  let since = "";
  for (let hasMore = true; hasMore; ) {
    const path = `closings/${closing.closing_id}/rows/?limit=500${since}`;
    const page = await operator.good<{ rows: { key: string; row: string }[]; has_more: boolean }>("GET", path);
    rows.push(...page.rows.map(({ row }) => row));
    since = `&since_key=${page.rows.at(-1)?.key ?? ""}`;
    hasMore = page.has_more;
  }
  expect(rows).toHaveLength(1 + LINES);
  const { keys } = await operator.good<{ keys: { public_key: string }[] }>("GET", "closing-keys/");
  expect(keys.map(({ public_key }) => public_key)).toContain(closing.signature.public_key);
  const folder = temporaryFolder("closing");
  writeRows(join(folder.path, "closing.ndjson"), rows);
  const verdict = execFileSync(process.execPath, [
    SCRIPT,
    join(folder.path, "closing.ndjson"),
    "--key",
    keys[0]?.public_key ?? "",
  ]);
  folder.remove();
  expect(verdict.toString()).toContain(`${LINES} lines, 0 issues`);
  const list = await operator.good<{ closings: { closing_id: number }[] }>("GET", `closings/?account_id=${accountId}`);
  expect(list.closings.map(({ closing_id }) => closing_id)).toEqual([closing.closing_id]);
});

test("an export: contains all rows that the filter names, as CSV without formulas and as JSON", async () => {
  const csv = await download(`exports/lines/?account_id=${accountId}&max_amount=-0.02&currency=EUR`);
  expect(csv.type).toBe("text/csv; charset=utf-8");
  const rows = parse<Record<string, string>>(csv.text, { columns: true });
  expect(rows).toHaveLength(LINES - 1);
  expect(rows[0]).toMatchObject({ amount: "-0.02", amount_minor: "-2", currency: "EUR", text: "'=1+1", fee: "" });
  const json = await download(`exports/lines/?account_id=${accountId}&format=json`);
  const list = await operator.good<{ lines: object[] }>("GET", `lines/?account_id=${accountId}&limit=1`);
  const all = JSON.parse(json.text) as object[];
  expect(all).toHaveLength(LINES);
  expect(all[0]).toEqual(list.lines[0]);
  expect((await download("exports/issues/?format=json")).text).toBe("[]\n");
  expect((await download("exports/matches/")).text).toMatch(/^match_id,account_id,/);
  expect((await download("exports/lines/?account_id=999999")).status).toBe(404);
});

test("a closed issue: it can be opened again until its day is closed", async () => {
  await database`
    with l as (
      insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, kind, provider_type, amount_minor,
        currency, booked_on, provider_reference, payment_reference, merchant_reference, payout_reference, terminal, account, text)
      values (${system.sandbox.organizationId}, ${accountId}, sha256('unknown'), 1, 'payment', 'PAY', 500, 'EUR', '2026-03-12',
        'unknown', '', '', '', '', '', '') returning line_id
    )
    insert into statement_line_sources (import_id, position, line_id)
    select max(s.import_id), ${LINES + 1}, max(l.line_id) from statement_line_sources s, l`;
  await operator.good("POST", "runs/", { body: { account_id: accountId } });
  const list = () => operator.good<{ issues: { issue_id: number }[] }>("GET", "issues/?status=open");
  const issueId = await vi.waitUntil(async () => (await list()).issues[0]?.issue_id, { timeout: 10_000 });
  const close = (key: string) =>
    operator.good("POST", `issues/${issueId}/close/`, { key, body: { reason: "Paid back." } });
  const undo = (key: string) => operator.call("POST", `issues/${issueId}/undo/`, { key, body: {} });
  await close("first");
  expect((await undo("first")).body).toMatchObject({ status: "open" });
  await close("second");
  const body = { ...day, account_id: accountId, from_date: "2026-03-12" };
  await vi.waitFor(() => operator.good("POST", "periods/close/", { body }), { timeout: 10_000 });
  const refused = await undo("second");
  expect(refused.status).toBe(409);
  expect(refused.body).toMatchObject({ code: "conflict", reason: "period_closed" });
  const many = await operator.good("POST", "issues/undo/", { body: { issue_ids: [issueId] } });
  expect(many).toEqual({ reopened: 0, refused: [{ issue_id: issueId, reason: "period_closed" }], remaining_ids: [] });
  expect((await list()).issues).toEqual([]);
});

async function download(path: string) {
  const answer = await fetch(`${system.baseUrl}/api/reconciliation/v1/${path}`, {
    headers: { Authorization: `Bearer ${operator.token}` },
  });
  return { status: answer.status, type: answer.headers.get("content-type"), text: await answer.text() };
}
