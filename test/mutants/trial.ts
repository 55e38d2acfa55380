/** Tries mutants with the tests of their files, in a copy of the checkout. */
import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { BaseSequencer, createVitest, type TestModule, type TestSpecification } from "vitest/node";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";
import { type Change, changed, withSwitches } from "./change.ts";
import type { Finding, Plan } from "./runner.ts";

export interface Mutant extends Change {
  readonly id: number;
  readonly file: string;
  readonly line: number;
  /** Where it runs outside the worker: in processes that tests start, or in this SQL function. */
  readonly unseen: "process" | { readonly start: number; readonly end: number } | undefined;
}

export interface TestsOf {
  /** The test files, in the order in which they run. */
  readonly tests: readonly string[];
  /** The tests that are left out when each mutant needs a separate run. */
  readonly slow?: readonly string[];
  /** Whether the tests need PostgreSQL or NATS. */
  readonly servers: boolean;
}

const CHECKOUT = join(import.meta.dirname, "..", "..");
const STUCK_MS = 180_000;

/** Copies the files of the checkout as they are now. The installed packages are shared. */
export function copyCheckout(): TemporaryFolder {
  const folder = temporaryFolder("mutants");
  const list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
  for (const file of execFileSync("git", list, { cwd: CHECKOUT, encoding: "utf8" }).split("\0")) {
    if (file === "" || !existsSync(join(CHECKOUT, file))) continue;
    mkdirSync(dirname(join(folder.path, file)), { recursive: true });
    cpSync(join(CHECKOUT, file), join(folder.path, file));
  }
  for (const shared of ["node_modules", ".cache"])
    if (existsSync(join(CHECKOUT, shared))) symlinkSync(join(CHECKOUT, shared), join(folder.path, shared));
  return folder;
}

/** Returns the mutants that a test notices, with how, and all mutants that were tried. Throws if a test fails without one. */
export async function tryMutants(
  { path }: Pick<TemporaryFolder, "path">,
  mutants: readonly Mutant[],
  { tests, slow = [], servers }: TestsOf,
  { print, untilMs }: { readonly print: (line: string) => void; readonly untilMs: number },
): Promise<{ readonly killed: ReadonlyMap<number, string>; readonly tried: ReadonlySet<number> }> {
  const killed = new Map<number, string>();
  const files = {
    plan: join(path, "mutants.json"),
    report: join(path, "mutants.ndjson"),
    active: join(path, "mutant"),
  };
  const originals = new Map(mutants.map(({ file }) => [file, readFileSync(join(path, file), "utf8")]));
  for (const [file, program] of originals) {
    const switched = mutants.filter((mutant) => mutant.file === file && typeof mutant.unseen !== "object");
    if (switched.length > 0) writeFileSync(join(path, file), withSwitches(program, switched, files.active));
  }
  process.env["MUTANTS_PLAN"] = files.plan;
  writeFileSync(files.active, "0");
  const lastFile = join(path, "all-mutants.test.ts");
  writeFileSync(lastFile, 'import { test } from "vitest";\ntest("all mutants", () => undefined);\n');
  const vitest = await createVitest("test", {
    config: false,
    root: path,
    // A separate cache: vitest empties the one in the shared `node_modules` for another lockfile, even during a run of the tests.
    fsModuleCachePath: join(path, ".vitest-cache"),
    include: [...tests, basename(lastFile)],
    runner: join(import.meta.dirname, "runner.ts"),
    ...(servers ? { globalSetup: [join(path, "test", "support", "global-servers.ts")] } : {}),
    pool: "forks",
    isolate: false,
    maxWorkers: 1,
    bail: 1,
    watch: false,
    reporters: [{}],
    sequence: { sequencer: AsGiven },
    // Long enough for a test with all mutants that it reaches.
    testTimeout: 3_600_000,
    hookTimeout: 600_000,
  });
  const place = ({ moduleId }: TestSpecification): number =>
    moduleId === lastFile ? tests.length : tests.findIndex((test) => moduleId.endsWith(test));
  const whole = (await vitest.globTestSpecifications()).toSorted((a, b) => place(a) - place(b));

  async function run(specifications: readonly TestSpecification[], what: Pick<Plan, "mutants" | "unseen" | "alone">) {
    writeFileSync(files.report, "");
    writeFileSync(files.plan, JSON.stringify({ ...files, ...what, isAtEnd: !servers, untilMs } satisfies Plan));
    vitest.state.filesMap.clear();
    const watch = watchOver(files.report);
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications([...specifications]);
    clearInterval(watch);
    const broken = testModules.find((module) => module.state() === "failed");
    const failure = broken === undefined ? unhandledErrors.map(String)[0] : `${broken.moduleId}: ${errorOf(broken)}`;
    return { failure, found: findingsOf(files.report) };
  }

  const tried = new Set<number>();
  const reached = new Set<number>();
  const loaded = new Set<number>();
  async function tryTogether(left: readonly Mutant[]): Promise<void> {
    const unseen = left.flatMap((mutant) => {
      const program = originals.get(mutant.file) ?? "";
      return mutant.unseen === undefined ? [] : [[mutant.id, definitionsOf(program, mutant)] as const];
    });
    const plan = { mutants: left.map(({ id }) => id), unseen: Object.fromEntries(unseen), alone: undefined };
    const { failure, found } = await run(whole, plan);
    for (const finding of found) {
      if ("killed" in finding) killed.set(finding.killed, finding.by);
      for (const id of "reached" in finding ? finding.reached : []) reached.add(id);
      for (const id of "reached" in finding ? finding.loaded : []) loaded.add(id);
      if ("tried" in finding) tried.add(finding.tried);
      if ("spoiled" in finding) print(`A test that cannot be repeated: ${finding.spoiled}`);
    }
    const last = found.at(-1);
    if (last === undefined || !("started" in last)) {
      if (failure !== undefined) throw new Error(`A test fails without a mutant: ${failure}`);
      return;
    }
    // The worker did not finish this mutant. The others continue without it.
    killed.set(last.started, "it does not end");
    tried.add(last.started);
    await tryTogether(left.filter(({ id }) => !killed.has(id)));
  }

  try {
    await tryTogether(mutants.filter(({ isAtLoad }) => !isAtLoad));
    // A mutant that acts while modules are loaded needs a separate run, which ends at the first test that fails.
    const alone = mutants.filter(
      ({ id, isAtLoad }) => isAtLoad || (loaded.has(id) && !reached.has(id) && !killed.has(id)),
    );
    for (const { id, file } of alone) {
      if (Date.now() > untilMs) break;
      const own = whole.filter(({ moduleId }) => readFileSync(moduleId, "utf8").includes(`/${basename(file)}"`));
      const others = whole.filter((test) => !own.includes(test) && !slow.some((name) => test.moduleId.endsWith(name)));
      const { failure } = await run([...own, ...others], { mutants: [], unseen: {}, alone: id });
      tried.add(id);
      if (failure !== undefined) killed.set(id, failure);
    }
  } finally {
    await vitest.close();
    for (const [file, program] of originals) writeFileSync(join(path, file), program);
  }
  return { killed, tried };
}

class AsGiven extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files;
  }
}

function errorOf(module: TestModule): string | undefined {
  const tests = [...module.children.allTests("failed")];
  return [...module.errors(), ...tests.flatMap((test) => test.result().errors ?? [])][0]?.message;
}

function definitionsOf(program: string, mutant: Mutant): Plan["unseen"][number] {
  const { unseen } = mutant;
  if (typeof unseen !== "object") return {};
  const mutated = changed(program, mutant);
  const define = (text: string, end: number): string =>
    text.slice(unseen.start, end).replace(/^create function/, "create or replace function");
  return {
    sql: define(mutated, unseen.end + mutated.length - program.length),
    original: define(program, unseen.end),
  };
}

const findingsOf = (report: string): readonly Finding[] =>
  readFileSync(report, "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as Finding);

/** Ends a worker that one mutant keeps busy for minutes. */
function watchOver(report: string): NodeJS.Timeout {
  let [since, lines] = [Date.now(), 0];
  return setInterval(() => {
    const found = findingsOf(report);
    if (found.length !== lines) [since, lines] = [Date.now(), found.length];
    const worker = found.find((finding) => "pid" in finding);
    const last = found.at(-1);
    if (Date.now() - since > STUCK_MS && worker && last && "started" in last) process.kill(worker.pid, "SIGKILL");
  }, 10_000);
}

/** The mutants that the compiler refuses, so that they cannot get into the program. */
export async function refusedByCompiler(
  { path }: Pick<TemporaryFolder, "path">,
  mutants: readonly Mutant[],
): Promise<ReadonlySet<number>> {
  const files = mutants
    .filter(({ file, unseen }) => file.endsWith(".ts") && unseen === undefined)
    .map((mutant) => {
      const name = mutant.file.replace(/ts$/, `mutant-${mutant.id}.ts`);
      writeFileSync(join(path, name), changed(readFileSync(join(path, mutant.file), "utf8"), mutant));
      return name;
    });
  if (files.length === 0) return new Set();
  const project = join(path, "tsconfig.mutants.json");
  // A mutant that removes code may remove the only use of a local or a parameter.
  const compilerOptions = { incremental: false, noUnusedLocals: false, noUnusedParameters: false };
  writeFileSync(project, JSON.stringify({ extends: "./tsconfig.json", compilerOptions, include: [], files }));
  const options = ["-p", project, "--pretty", "false"];
  const tsc = promisify(execFile)("tsc", options, { maxBuffer: 2 ** 27 });
  const output = await tsc.then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
  for (const name of files) rmSync(join(path, name));
  return new Set([...output.matchAll(/\.mutant-(\d+)\.ts\(\d+,\d+\): error/g)].map(([, id]) => Number(id)));
}
