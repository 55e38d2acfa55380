/** The export of a large closing: its pages together read the account's lines once, and not all of them for each page. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Transaction } from "../../../services/db/pool.ts";
import { getClosing, listClosingLines } from "../../../services/reconciliation/sql/closings.ts";
import { type RunDatabase, type RunWorld, startRunDatabase } from "../matching/run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

const LINES = 2_000;
const LIMIT = 100;

/** Stores equally many lines in a month and in the month after it, and closes the first. Returns the closing's id. */
async function closeMany({ database, organizationId, qrAccountId }: RunWorld): Promise<number> {
  // No `analyze`, as in a new table: then the planner expects few lines in a month.
  await database`alter table statement_lines set (autovacuum_enabled = false)`;
  await database`
    insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, kind, provider_type,
      amount_minor, currency, booked_on, provider_reference, payment_reference, merchant_reference, payout_reference, terminal, account, text, details)
    select ${organizationId}, ${qrAccountId}, sha256(convert_to(n::text, 'UTF8')), 1, 'payment', 'payment',
      100, 'EUR', case when n > ${LINES}::int then '2026-04-10'::date else '2026-03-10'::date end, 'ref-' || n, '', '', '', '', '', '', '{}'
    from generate_series(1, ${2 * LINES}::int) n`;
  await database`insert into closing_keys (key_id, public_key) values ('0123456789abcdef', sha256('key'))`;
  const [closing] = await database<[{ closing_id: number }]>`
    insert into period_closings (organization_id, account_id, kind, from_date, to_date, through_line_id, statement, statement_hash,
      key_id, signature, closed_by, closed_by_name, closed_at, reason)
    select ${organizationId}, ${qrAccountId}, 'month', '2026-03-01', '2026-03-31', max(line_id), '{}', sha256('statement'),
      '0123456789abcdef', sha256('a') || sha256('b'), 7, 'Rita', now(), 'All is decided.' from statement_lines
    returning closing_id`;
  return closing.closing_id;
}

/** How many lines the connection has read and not yet reported to PostgreSQL's statistics. */
async function rowsRead(tx: Transaction): Promise<number> {
  const [row] = await tx<[{ read: number }]>`
    select (coalesce(idx_tup_fetch, 0) + seq_tup_read)::float8 as read from pg_stat_xact_user_tables
    where relname = 'statement_lines'`;
  return row.read;
}

test("a large closing: its pages have each line once, in order, and read the account's lines once", async () => {
  const world = await running.openWorld();
  const { database, organizationId } = world;
  const closing = await getClosing(database, { organizationId, closingId: await closeMany(world) });
  if (closing === undefined) throw new Error("There is no closing.");
  let read = 0;
  const counting = new Proxy(database, {
    get: (target, name) =>
      name === "begin"
        ? (work: (tx: Transaction) => Promise<unknown>) =>
            target.begin(async (tx) => {
              const before = await rowsRead(tx);
              const rows = await work(tx);
              read += (await rowsRead(tx)) - before;
              return rows;
            })
        : (Reflect.get(target, name) as unknown),
  });
  const keys: string[] = [];
  for (let after: string | undefined; ; after = keys.at(-1)) {
    const page = await listClosingLines(counting, { closing, isLarge: true, after, limit: LIMIT });
    keys.push(...page.map(({ key }) => key));
    if (page.length < LIMIT) break;
  }
  const fingerprints = Array.from({ length: LINES }, (_, n) =>
    createHash("sha256")
      .update(`${n + 1}`)
      .digest("hex"),
  );
  expect(keys).toEqual(fingerprints.toSorted());
  expect(read).toBeGreaterThanOrEqual(LINES);
  expect(read).toBeLessThan(3 * LINES);
});
