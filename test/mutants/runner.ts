/**
 * Runs each test once as it is, and then again with each mutant that it reaches and that no test has noticed yet. It loads
 * nothing again, so hundreds of mutants take as long as some runs. It runs inside the worker of vitest.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import postgres from "postgres";
import { inject, type RunnerTestCase, TestRunner } from "vitest";

/** The task of the worker. */
export interface Plan {
  /** The file for its findings, one line each. */
  readonly report: string;
  /** The file that names the mutant that is on, for processes that tests start. */
  readonly active: string;
  /** The mutants that are tried one after another. */
  readonly mutants: readonly number[];
  /** The mutants that run outside the worker: in the database, with this definition, or in a separate process. */
  readonly unseen: Readonly<Record<number, { readonly sql?: string; readonly original?: string }>>;
  /** True when no test needs servers. Then all mutants are tried in the last test. */
  readonly isAtEnd: boolean;
  /** No mutant is tried after this time. */
  readonly untilMs: number;
  /** The only mutant of this run, which is on from the start. */
  readonly alone: number | undefined;
}

export type Finding =
  | { readonly pid: number }
  | { readonly started: number }
  | { readonly tried: number }
  | { readonly killed: number; readonly by: string }
  /** The mutants that the test reached, and those reached before it, while modules were loaded. */
  | { readonly reached: readonly number[]; readonly loaded: readonly number[] }
  | { readonly spoiled: string };

/** The test, in a separate file, during which all mutants are tried. */
const LAST_TEST = "all mutants";

/** A mutant may make a test this much slower. */
const SLOWER_BY = 20;
const ALWAYS_ALLOWED_MS = 10_000;
const ALWAYS_ALLOWED_CALLS = 100_000;

const plan = JSON.parse(readFileSync(process.env["MUTANTS_PLAN"] ?? "", "utf8")) as Plan;
const find = (finding: Finding): void => appendFileSync(plan.report, `${JSON.stringify(finding)}\n`);

interface RunTest {
  readonly run: () => Promise<void>;
  readonly file: string;
  readonly name: string;
  readonly took: number;
  readonly calls: number;
  readonly reached: ReadonlySet<number>;
}

/** The state that the worker keeps from file to file. */
class State {
  readonly killed = new Set<number>();
  readonly tests: RunTest[] = [];
  readonly unrepeatable = new Set<RunTest>();
  reached = new Set<number>();
  active: number | undefined = plan.alone;
  calls = 0;
  callsLeft = Number.POSITIVE_INFINITY;
  readonly isMutant = (id: number): boolean => {
    this.calls += 1;
    if (this.calls > this.callsLeft) throw new Error("A mutant does not end.");
    this.reached.add(id);
    return id === this.active;
  };
}
const global = globalThis as { mutants?: State; isMutant?: State["isMutant"] };
if (global.mutants === undefined) {
  global.mutants = new State();
  global.isMutant = global.mutants.isMutant;
  writeFileSync(plan.active, String(plan.alone));
  find({ pid: process.pid });
}
const state = global.mutants;

export default class MutantRunner extends TestRunner {
  async runTask(test: RunnerTestCase): Promise<void> {
    const run = TestRunner.getTestFn(test) as () => Promise<void>;
    state.calls = 0;
    const loaded = [...state.reached];
    state.reached = new Set();
    const began = performance.now();
    await run();
    const { calls, reached } = state;
    state.reached = new Set();
    if (plan.alone !== undefined) return;
    find({ reached: [...reached], loaded });
    const { name: file } = test.file;
    const took = performance.now() - began;
    state.tests.push({ run, file, name: `${file}: ${test.name}`, took, calls, reached });
    // A test with servers is repeated while they run. Other tests wait until the runner knows which of them reaches least.
    if (!plan.isAtEnd || test.name === LAST_TEST) await tryAll();
  }
}

/** Tries each mutant on the tests since the last call: one test of each file in turn, short ones that reach little first. */
async function tryAll(): Promise<void> {
  const files = Map.groupBy(state.tests.splice(0), ({ file }) => file);
  const turns = [...files.values()].flatMap((own) =>
    own.toSorted((a, b) => a.reached.size * a.took - b.reached.size * b.took).map((test, turn) => ({ test, turn })),
  );
  const tests = turns.toSorted((a, b) => a.turn - b.turn).map(({ test }) => test);
  for (const id of plan.mutants) {
    if (state.killed.has(id) || Date.now() > plan.untilMs) continue;
    for (const test of tests) {
      if ((plan.unseen[id] === undefined && !test.reached.has(id)) || state.unrepeatable.has(test)) continue;
      find({ started: id });
      const isNoticed = await isFailing(test, id);
      // The effects of one mutant must not count as those of the next one.
      if (isNoticed && (await isFailing(test, undefined))) {
        state.unrepeatable.add(test);
        find({ spoiled: test.name });
      } else if (isNoticed) {
        state.killed.add(id);
        find({ killed: id, by: test.name });
        break;
      }
    }
    find({ tried: id });
  }
}

async function isFailing({ run, took, calls }: RunTest, id: number | undefined): Promise<boolean> {
  const unseen = id === undefined ? undefined : plan.unseen[id];
  let timer: NodeJS.Timeout | undefined;
  try {
    await define(unseen?.sql);
    state.active = id;
    state.calls = 0;
    state.callsLeft = calls * SLOWER_BY + ALWAYS_ALLOWED_CALLS;
    if (Object.keys(plan.unseen).length > 0) writeFileSync(plan.active, String(id));
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error("A mutant takes long.")), took * SLOWER_BY + ALWAYS_ALLOWED_MS);
    });
    await Promise.race([run(), late]);
    return false;
  } catch {
    return true;
  } finally {
    clearTimeout(timer);
    state.active = undefined;
    state.callsLeft = Number.POSITIVE_INFINITY;
    if (Object.keys(plan.unseen).length > 0) writeFileSync(plan.active, "0");
    await define(unseen?.original);
  }
}

/** Gives an SQL function this definition in all databases of the tests. */
async function define(sql: string | undefined): Promise<void> {
  if (sql === undefined) return;
  const url = inject("databaseAdminUrl");
  const admin = postgres(url, { max: 1 });
  const names = await admin<{ datname: string }[]>`select datname from pg_database where datname like 'test\\_%'`;
  await admin.end();
  for (const { datname } of names) {
    const database = postgres(Object.assign(new URL(url), { pathname: `/${datname}` }).href, { max: 1 });
    try {
      await database.unsafe(sql);
    } finally {
      await database.end();
    }
  }
}
