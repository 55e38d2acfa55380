/**
 * Measures reconciliation: imported rows per second, compared with a bare COPY of the same rows; the time to match lines with
 * payments, compared with a bare join; and the memory of an import by the number of its rows. The bench generates each file
 * while the importer reads it.
 */
import { runReconciliation } from "../../services/reconciliation/matching.ts";
import { median } from "../support/percentile.ts";
import type { BenchProcess, BenchWorld } from "./bench-world.ts";
import { cpuTimeUs, familyCpuTimeUs, peakResidentBytes } from "./cpu-time.ts";
import type { TimedAnswer } from "./load/timed-answers.ts";
import { FIRST_DAY, LAST_DAY } from "./statement-files.ts";
import { openStatementWorld, type StatementWorld } from "./statement-world.ts";

export interface ReconciliationPlan {
  readonly importRows: number;
  readonly rounds: number;
  /** The number of lines, and of payments. */
  readonly matchRows: number;
  readonly memoryRows: readonly number[];
}

/** The rate of one process, and the CPU time of the process and of PostgreSQL for one row. */
export interface Work {
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly postgresCpuUs: number;
}

export interface ReconciliationMeasurement {
  readonly importRows: number;
  readonly imported: Work;
  /** An import of the same rows from a file with other bytes. */
  readonly again: Work;
  /** The import's rate divided by the control's rate, for each round. */
  readonly shares: Readonly<Record<Control, readonly number[]>>;
  readonly controls: Readonly<Record<Control, Work>>;
  readonly matching: {
    readonly rows: number;
    readonly seconds: number;
    readonly againSeconds: number;
    readonly joinSeconds: number;
    readonly cpuUs: number;
  };
  readonly memory: readonly { readonly rows: number; readonly peakBytes: number; readonly seconds: number }[];
}

/** The plain table has no index. The indexed table has the indexes and checks of the product's table. None has foreign keys. */
const CONTROLS = ["plain", "indexed"] as const;
export type Control = (typeof CONTROLS)[number];
const TABLES: Readonly<Record<Control, string>> = { plain: "bench_plain_lines", indexed: "bench_indexed_lines" };

export async function measureReconciliation(
  world: BenchWorld,
  plan: ReconciliationPlan,
): Promise<ReconciliationMeasurement> {
  const url = await world.databaseUrl();
  const statements = await openStatementWorld(url);
  const start = (name: string, ...args: string[]): Promise<BenchProcess> =>
    world.startProcess(name, `test/bench/load/${name}.ts`, [url, ...args]);
  try {
    const imports = await measureImports({ world, statements, start }, plan);
    const matching = await measureMatching({ world, statements, start }, plan.matchRows);
    const memory: ReconciliationMeasurement["memory"][number][] = [];
    for (const rows of plan.memoryRows) memory.push(await measureMemory({ world, statements, start }, rows));
    return { importRows: plan.importRows, ...imports, matching, memory };
  } finally {
    await statements.stop();
  }
}

interface Bench {
  readonly world: BenchWorld;
  readonly statements: StatementWorld;
  readonly start: (name: string, ...args: string[]) => Promise<BenchProcess>;
}

/** The first round is a warm-up and is not counted. Each round adds the same number of rows to each table. */
async function measureImports(
  bench: Bench,
  { importRows: rows, rounds }: ReconciliationPlan,
): Promise<Pick<ReconciliationMeasurement, "imported" | "again" | "shares" | "controls">> {
  const { statements, start } = bench;
  await makeTables(statements);
  const importer = await start("statement-importer");
  const copiers = {
    plain: await startCopier(start, "plain", rows),
    indexed: await startCopier(start, "indexed", rows),
  };
  const accountId = await statements.addAccount();
  const measured: { imported: Work; again: Work; plain: Work; indexed: Work }[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const importEdition = async (edition: number): Promise<Work> => {
      const importId = await statements.upload({ prefix: `round${round}`, rows, edition }, accountId);
      const work = await measureWork(bench, importer, rows);
      const [linesNew, linesKnown] = edition === 0 ? [rows, 0] : [0, rows];
      await statements.requireLines(importId, { lines_new: linesNew, lines_known: linesKnown });
      return work;
    };
    const plain = await measureWork(bench, copiers.plain, rows);
    const imported = await importEdition(0);
    const indexed = await measureWork(bench, copiers.indexed, rows);
    const again = await importEdition(1);
    if (round > 0) measured.push({ imported, again, plain, indexed });
  }
  for (const child of [importer, ...Object.values(copiers)]) await child.stop();
  await statements.database.unsafe(`drop table ${TABLES.plain}, ${TABLES.indexed}`);
  const middle = (of: keyof (typeof measured)[number]): Work => ({
    perSecond: median(measured.map((round) => round[of].perSecond)),
    cpuUs: median(measured.map((round) => round[of].cpuUs)),
    postgresCpuUs: median(measured.map((round) => round[of].postgresCpuUs)),
  });
  const shares = (of: Control): number[] => measured.map((round) => round.imported.perSecond / round[of].perSecond);
  return {
    imported: middle("imported"),
    again: middle("again"),
    controls: { plain: middle("plain"), indexed: middle("indexed") },
    shares: { plain: shares("plain"), indexed: shares("indexed") },
  };
}

const startCopier = (start: Bench["start"], control: Control, rows: number): Promise<BenchProcess> =>
  start("bare-copy", TABLES[control], String(rows));

async function makeTables({ database }: StatementWorld): Promise<void> {
  await database.unsafe(`
    create table ${TABLES.plain} (like statement_lines including defaults including identity);
    create table ${TABLES.indexed} (like statement_lines including all);`);
}

async function measureWork({ world, statements }: Bench, child: BenchProcess, rows: number): Promise<Work> {
  // A checkpoint before the measurement, so that it does not include the disk writes of earlier work.
  await statements.database`checkpoint`;
  const postgresPid = world.postgresPid() ?? 0;
  const before = { child: cpuTimeUs(child.pid), postgres: familyCpuTimeUs(postgresPid) };
  const elapsedMs = await timeOf(child);
  return {
    perSecond: (rows / elapsedMs) * 1_000,
    cpuUs: (cpuTimeUs(child.pid) - before.child) / rows,
    postgresCpuUs: (familyCpuTimeUs(postgresPid) - before.postgres) / rows,
  };
}

async function timeOf(child: BenchProcess): Promise<number> {
  const answer = await child.ask<TimedAnswer>();
  if ("failure" in answer) throw new Error(answer.failure);
  return answer.elapsedMs;
}

/** The control stores the pairs that a bare join of lines and payments finds. */
async function measureMatching(
  { world, statements, start }: Bench,
  rows: number,
): Promise<ReconciliationMeasurement["matching"]> {
  const { database, organizationId, accountId } = statements;
  const file = { prefix: "match", rows, edition: 0 };
  const importer = await start("statement-importer");
  const importId = await statements.upload(file);
  await timeOf(importer);
  await importer.stop();
  await statements.requireLines(importId, { lines_new: rows, lines_known: 0 });
  await statements.settlePayments(file);
  const run = async (): Promise<number> => {
    const startedAtMs = performance.now();
    const request = { organizationId, accountId, fromDate: FIRST_DAY, toDate: LAST_DAY, startedBy: 1 };
    const runId = await runReconciliation({ database, longDatabase: database }, request);
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const [{ matched, differences }] = await database<[{ matched: number; differences: number }]>`
      select matched, differences from reconciliation_runs where run_id = ${runId}`;
    if (matched !== rows || differences !== 0)
      throw new Error(`${matched} lines match, with ${differences} differences.`);
    return seconds;
  };
  const joinSeconds = await timeOfJoin(statements);
  const postgresPid = world.postgresPid() ?? 0;
  const cpuBefore = familyCpuTimeUs(postgresPid);
  const seconds = await run();
  const cpuUs = (familyCpuTimeUs(postgresPid) - cpuBefore) / rows;
  return { rows, seconds, cpuUs, againSeconds: await run(), joinSeconds };
}

async function timeOfJoin({ database, accountId }: StatementWorld): Promise<number> {
  const startedAtMs = performance.now();
  await database`
    create table bench_pairs as
    select l.line_id, t.transaction_id from statement_lines l
      join provider_payments p on p.paid_reference = l.provider_reference
      join transactions t on t.intent_id = p.intent_id
    where l.account_id = ${accountId} and t.amount_minor = l.amount_minor and t.currency = l.currency`;
  return (performance.now() - startedAtMs) / 1_000;
}

/** Each measurement starts a new process, so that its peak memory contains nothing of an earlier one. */
async function measureMemory(
  { statements, start }: Bench,
  rows: number,
): Promise<ReconciliationMeasurement["memory"][number]> {
  const importer = await start("statement-importer");
  const importId = await statements.upload({ prefix: "memory", rows, edition: 0 }, await statements.addAccount());
  const elapsedMs = await timeOf(importer);
  const peakBytes = peakResidentBytes(importer.pid);
  await importer.stop();
  await statements.requireLines(importId, { lines_new: rows, lines_known: 0 });
  return { rows, peakBytes, seconds: elapsedMs / 1_000 };
}
