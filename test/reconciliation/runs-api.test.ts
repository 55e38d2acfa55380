/** Runs and matches through a real gateway and a real service. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { send } from "../support/http.ts";
import { addOperator, logIn, type Person } from "../support/people.ts";
import { addOrganization } from "../support/second-organization.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

interface Run {
  readonly run_id: number;
  readonly status: string;
  readonly lines: number;
  readonly started_by: number | null;
  readonly previous_run_id: number | null;
  readonly totals: readonly object[];
}

/** A run follows its import within seconds. */
const SOON = { timeout: 10_000, interval: 100 };

let system: TestSystem;
let database: Database;
let operator: Person;
let stranger: Person;

beforeAll(async () => {
  system = await sharedSystem();
  database = openDatabase({ url: system.database.url, maxConnections: 1 });
  operator = await addOperator(system.baseUrl, await logIn(system.baseUrl, "backoffice", system.owner));
  const elsewhere = await logIn(system.baseUrl, "backoffice", (await addOrganization(system)).owner);
  stranger = await addOperator(system.baseUrl, elsewhere, "rita@elsewhere.example");
});
afterAll(async () => {
  await closeDatabase(database);
  await system.stop();
});

let accounts = 0;
async function openAccount(): Promise<number> {
  const facts = { provider: "bank", reference: `DE-${(accounts += 1)}`, name: "Bank", mode: "test" };
  const account = await operator.good<{ account_id: number }>("POST", "accounts/", { body: facts });
  return account.account_id;
}

/** Stores an import of two credits as the last transaction of a real import does. */
async function importCredits(accountId: number): Promise<void> {
  const { organizationId } = system.sandbox;
  const hash = createHash("sha256").update(`file of ${accountId}`).digest();
  await database.begin(async (tx) => {
    const [file] = await tx<{ import_id: number }[]>`
      insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, format, format_version, encoding,
        status, uploaded_by, from_date, to_date)
      values (${organizationId}, ${accountId}, ${hash}, 'a.xml', 1, 'camt.053', 1, 'utf-8', 'importing', ${operator.userId},
        '2026-03-01', '2026-03-31')
      returning import_id`;
    await tx`
      with l as (
        insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, kind, provider_type, amount_minor,
          currency, booked_on, provider_reference, payment_reference, merchant_reference, payout_reference, terminal, account, text)
        select ${organizationId}, ${accountId}, sha256(int8send(n)), 1, 'bank_credit', 'PMNT', n * 100, 'EUR', '2026-03-10', 'r-' || n,
          '', '', '', '', '', ''
        from generate_series(1, 2) as n returning line_id
      )
      insert into statement_line_sources (import_id, position, line_id)
      select ${file?.import_id ?? 0}, row_number() over (), line_id from l`;
    await tx`update statement_imports set status = 'imported', ended_at = now() where import_id = ${file?.import_id ?? 0}`;
  });
}

const ended = async (runId: number): Promise<Run> =>
  await vi.waitFor(async () => {
    const run = await operator.good<Run>("GET", `runs/${runId}/`);
    expect(run.status).toBe("done");
    return run;
  }, SOON);

describe("runs", () => {
  test("an import: a run follows automatically, and a run that a person starts has the same result", async () => {
    const account_id = await openAccount();
    await importCredits(account_id);
    const first = await vi.waitFor(async () => {
      const { runs } = await operator.good<{ runs: Run[] }>("GET", `runs/?account_id=${account_id}`);
      expect(runs).toMatchObject([{ status: "done", started_by: null, lines: 2, differences: 2 }]);
      return runs[0] as Run;
    }, SOON);

    const begun = await operator.good<Run>("POST", "runs/", { body: { account_id } });
    const second = await ended(begun.run_id);

    expect(second).toMatchObject({
      started_by: operator.userId,
      previous_run_id: first.run_id,
      covered_from: "2026-03-01",
      totals: [{ currency: "EUR", lines: 2, total: "3.00", matched: "0.00", differing: "3.00", rejected: "0.00" }],
    });
    const compared = await operator.good("GET", `runs/${second.run_id}/changes/?change=unchanged`);
    expect(compared).toMatchObject({
      previous_run_id: first.run_id,
      counts: { new: 0, gone: 0, changed: 0, unchanged: 2 },
      differences: [{ kind: "unmatched_money", currency: "EUR", on_date: "2026-03-10" }, { kind: "unmatched_money" }],
    });
    const { issues } = await operator.good<{ issues: { kind: string; amount: string }[] }>(
      "GET",
      `issues/?account=statement:${account_id}`,
    );
    expect(issues.map(({ kind, amount }) => `${kind} ${amount}`).toSorted()).toEqual([
      "unmatched_money 1.00",
      "unmatched_money 2.00",
    ]);
  });

  test("an account without an import, days in the wrong order, an account or run of another organization: refused", async () => {
    const account_id = await openAccount();
    const ask = async (body: object, by = operator) => {
      const { status, body: answer } = await send<{ code?: string; reason?: string }>(
        system.baseUrl,
        "POST",
        "/api/reconciliation/v1/runs/",
        { json: body, token: by.token },
      );
      return [status, answer.reason ?? answer.code];
    };
    expect(await ask({ account_id })).toEqual([409, "nothing_imported"]);
    expect(await ask({ account_id, from_date: "2026-03-02", to_date: "2026-03-01" })).toEqual([400, "invalid_request"]);
    expect(await ask({ account_id, from_date: "1990-03-02", to_date: "2026-03-01" })).toEqual([409, "too_many_days"]);
    expect(await ask({ account_id, from_date: "2026-03-01", to_date: "2026-03-02" }, stranger)).toEqual([
      404,
      "not_found",
    ]);
    const run = await operator.good<Run>("POST", "runs/", {
      body: { account_id, from_date: "2026-03-01", to_date: "2026-03-02" },
    });
    await ended(run.run_id);
    for (const path of [`runs/${run.run_id}/`, `runs/${run.run_id}/changes/`]) {
      const answer = await send(system.baseUrl, "GET", `/api/reconciliation/v1/${path}`, { token: stranger.token });
      expect(answer.status, path).toBe(404);
    }
    expect(await stranger.good("GET", "runs/")).toEqual({ runs: [], has_more: false });
    expect(await stranger.good("GET", "matches/")).toEqual({ matches: [], has_more: false });
  });

  test("a comparison with a run that failed, or whose differences are deleted: refused with the reason", async () => {
    const account_id = await openAccount();
    await importCredits(account_id);
    const [failed] = await database<[{ run_id: number }]>`
      insert into reconciliation_runs (organization_id, account_id, from_date, to_date, status, ended_at, failure)
      values (${system.sandbox.organizationId}, ${account_id}, '2026-03-01', '2026-03-31', 'failed', now(), 'The disk is full.')
      returning run_id`;
    const run = await operator.good<Run>("POST", "runs/", { body: { account_id } });
    const { run_id } = await ended(run.run_id);
    const compare = async (path: string) => {
      const { status, body } = await send<{ reason?: string; counts?: object }>(
        system.baseUrl,
        "GET",
        `/api/reconciliation/v1/runs/${path}`,
        { token: operator.token },
      );
      return [status, body.reason];
    };
    expect(await compare(`${failed.run_id}/changes/`)).toEqual([409, "run_not_done"]);
    expect(await compare(`${run_id}/changes/?previous_run_id=${failed.run_id}`)).toEqual([409, "run_not_done"]);
    expect(await compare(`${run_id}/changes/`)).toEqual([200, undefined]);
    await database`delete from run_differences where run_id = ${run_id}`;
    expect(await compare(`${run_id}/changes/`)).toEqual([409, "differences_deleted"]);
  });

  test("a decision about an unknown line: refused", async () => {
    const path = "/api/reconciliation/v1/matches/";
    const both = { payment_key: "transaction:1", reason: "Checked." };
    const reject = { json: { line_id: 999_999, ...both }, token: operator.token };
    expect((await send(system.baseUrl, "POST", `${path}reject/`, reject)).status).toBe(404);
    const confirm = { line_ids: [999_999], payment_keys: ["transaction:1"], reason: "Checked." };
    const asked = { json: confirm, token: operator.token };
    expect((await send(system.baseUrl, "POST", `${path}confirm/`, asked)).status).toBe(404);
    expect(await operator.good("GET", "candidates/")).toEqual({ lines: [], has_more: false });
  });
});
