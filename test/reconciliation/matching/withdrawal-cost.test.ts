/** How long a withdrawal takes: it finds the issues of all its rows at once, and does not search all rows for each issue. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { withdrawImport } from "../../../services/reconciliation/import-decisions.ts";
import { operator } from "../closings/closing-world.ts";
import { type RunDatabase, type RunWorld, startRunDatabase } from "./run-world.ts";

let running: RunDatabase;
beforeAll(async () => {
  running = await startRunDatabase();
});
afterAll(() => running.stop());

const ROWS = 2_000;

/** Returns how long the work takes. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

async function importMalformed({ database, qrAccountId, ...world }: RunWorld, name: string): Promise<number> {
  const importId = await world.importLines(qrAccountId, [{ name }]);
  await database`
    insert into statement_malformed (import_id, position, column_name, reason, raw)
    select ${importId}, 1 + n, 'Amount', 'The row has no amount.', ${name} || ';' || n from generate_series(1, ${ROWS}::int) n`;
  return importId;
}

/** Withdraws the import, and waits until everything is done. */
async function withdraw({ database, organizationId }: RunWorld, importId: number): Promise<void> {
  const failures: unknown[] = [];
  const log = { info: () => undefined, warn: () => undefined, error: (fields: unknown) => void failures.push(fields) };
  const underWay = new Set<Promise<void>>();
  const request = { caller: operator({ organizationId }), importId, reason: "Wrong file." };
  await withdrawImport({ database, longDatabase: database, log, underWay }, request);
  await Promise.all(underWay);
  expect(failures).toEqual([]);
}

test("a withdrawal right after the run over many malformed rows: it takes about as long as the run", async () => {
  const world = await running.openWorld();
  const { database, organizationId, qrAccountId } = world;
  // No `analyze`, as in a new table: then the planner expects one issue instead of thousands.
  await database`alter table issues set (autovacuum_enabled = false)`;
  await importMalformed(world, "a file");
  const importId = await importMalformed(world, "another file");
  const runMs = await timed(() => world.run(qrAccountId));
  const withdrawalMs = await timed(() => withdraw(world, importId));
  const [ended] = await database`
    select count(*)::int as issues from issues where organization_id = ${organizationId} and status = 'ended'`;
  expect(ended).toEqual({ issues: ROWS + 1 });
  expect(withdrawalMs).toBeLessThan(2 * runMs);
});
