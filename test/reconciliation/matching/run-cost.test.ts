/** How much a run reads: each line of its account a few times, however many lines the account has. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Transaction } from "../../../services/db/pool.ts";
import { runReconciliation } from "../../../services/reconciliation/matching.ts";
import { FIRST_DAY, LAST_DAY, type RunDatabase, type RunWorld, startRunDatabase } from "./run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

const LINES = 500;

/** One file with this many lines, each with its own reference. */
async function importMany({ database, qrAccountId, ...world }: RunWorld): Promise<void> {
  const importId = await world.importLines(qrAccountId, [{ name: "first", providerReference: "first" }]);
  await database`
    with l as (
      insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, kind, provider_type,
        amount_minor, currency, booked_on, provider_reference, payment_reference, merchant_reference, payout_reference, terminal, account, text, details)
      select organization_id, account_id, sha256(convert_to(n::text, 'UTF8')), 1, kind, provider_type, amount_minor, currency,
        booked_on, 'ref-' || n, '', '', '', '', account, text, details
      from statement_lines cross join generate_series(2, ${LINES}::int) n where account_id = ${qrAccountId}
      returning line_id
    )
    insert into statement_line_sources (import_id, position, line_id)
    select ${importId}, row_number() over (order by line_id) + 1, line_id from l`;
  await database`analyze statement_lines`;
}

/** Carries out a run. Returns how many rows of lines PostgreSQL has read for it, and how many differences it has found. */
async function costOfRun({ database, organizationId, qrAccountId: accountId }: RunWorld) {
  const cost = { read: 0, differences: 0 };
  const begin = (work: (tx: Transaction) => Promise<void>) =>
    database.begin(async (tx) => {
      await work(tx);
      const [row] = await tx<[{ read: number; differences: number }]>`
        select (idx_tup_fetch + seq_tup_read)::float8 as read, (select count(*)::float8 from run_diffs) as differences
        from pg_stat_xact_user_tables where relname = 'statement_lines'`;
      Object.assign(cost, row);
    });
  const longDatabase = new Proxy(database, {
    get: (target, name) => (name === "begin" ? begin : (Reflect.get(target, name) as unknown)),
  });
  const days = { fromDate: FIRST_DAY, toDate: LAST_DAY };
  await runReconciliation({ database, longDatabase }, { organizationId, accountId, ...days, startedBy: 7 });
  return cost;
}

test("lines without payments: the first and the second run read each line a few times, not all lines for each line", async () => {
  const world = await running.openWorld();
  await importMany(world);
  for (const which of ["first", "second"]) {
    const { read, differences } = await costOfRun(world);
    expect(differences).toBe(LINES);
    expect(read, `the ${which} run`).toBeGreaterThan(LINES);
    expect(read, `the ${which} run`).toBeLessThan(20 * LINES);
  }
});
