/** `npm run mutants`: changes the program in small ways, and lists the changes that no test notices. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Random } from "../chaos/random.ts";
import { commandOptions } from "../support/command-options.ts";
import { changesOf, lineOf } from "./change.ts";
import { migrationOf, sqlChangesOf, sqlFunctionIn } from "./sql-change.ts";
import { copyCheckout, type Mutant, refusedByCompiler, type TestsOf, tryMutants } from "./trial.ts";

interface Part extends TestsOf {
  readonly group: "machines" | "seam" | "signatures";
  readonly files: readonly string[];
  /** The SQL functions to change. */
  readonly functions?: readonly string[];
}

const CHECKOUT = join(import.meta.dirname, "..", "..");
const listed = (pattern: string): string[] => globSync(pattern, { cwd: CHECKOUT }).toSorted();
const inMachines = (...names: string[]): string[] => names.map((name) => `test/machines/${name}.test.ts`);
const SLOW = inMachines("late-payments", "races", "charged-once", "properties");
const LAST = [...inMachines("station-table", "model-paths", "dynamic-qr", "long-reports", "commit"), ...SLOW];

const PARTS: readonly Part[] = [
  {
    group: "machines",
    files: listed("machines/**/*.ts"),
    tests: [...listed("test/machines/*.test.ts").filter((test) => !LAST.includes(test)), ...LAST],
    slow: SLOW,
    servers: false,
  },
  {
    group: "seam",
    files: ["services/settlement/payment-seam.ts", "services/settlement/sql/payment-seam.ts"],
    functions: ["settle_intent", "names_of_settlement"],
    tests: [
      "test/settlement/payment-seam.test.ts",
      "test/settlement/used-references.test.ts",
      "test/settlement/one-money-once.test.ts",
      "test/settlement/money-conservation.test.ts",
      "test/settlement/one-writer.test.ts",
      "test/providers/one-money-once.test.ts",
      "test/providers/money-of-one-account.test.ts",
      "test/providers/statement-money.test.ts",
    ],
    servers: true,
  },
  {
    group: "signatures",
    files: ["services/providers/adapters/callback-signature.ts", "services/bus/signature-header.ts"],
    tests: ["test/providers/callback-signatures.test.ts"],
    servers: true,
  },
  {
    group: "signatures",
    files: ["services/webhook-signer/signing.ts"],
    tests: ["test/clients/webhook-verifier.test.ts", "test/webhook-signer/rotation.test.ts"],
    servers: true,
  },
  {
    group: "signatures",
    files: ["clients/webhook-verifier.ts"],
    tests: ["test/clients/webhook-verifier.test.ts"],
    servers: false,
  },
  {
    group: "signatures",
    files: ["clients/verify-closing.mjs", "services/runtime/signing-key.ts"],
    tests: ["test/reconciliation/closings/verify-closing.test.ts"],
    servers: true,
  },
  {
    group: "signatures",
    files: ["clients/verify-certificate.mjs", ...listed("services/registry/certification/{dsse,merkle,note}.ts")],
    tests: [...listed("test/registry/certification/*.test.ts"), "test/clients/verify-certificate.test.ts"],
    servers: false,
  },
];

const HELP = `Changes the program in small ways, one at a time, and runs the tests of the changed file. It lists the changes that no
test notices ("survived"): each is a missing test, needless code, or a change without an effect. Changes that the
compiler refuses are not tried.

  npm run mutants
  npm run mutants -- --only=seam --sample=60 --seed=2

  --only=GROUP        machines, seam or signatures
  --file=TEXT         the files whose path has this text
  --sample=400        at most so many changes of each group, drawn at random
  --at-load=40        and so many of those that act while modules are loaded; each takes a run of the tests
  --seed=1            which ones
  --minutes=600       no more are tried after that time; those are in no row but the first
`;
const {
  only,
  file: part,
  sample,
  seed,
  minutes,
  "at-load": atLoad,
} = commandOptions(HELP, {
  only: { type: "string" },
  file: { type: "string", default: "" },
  sample: { type: "string", default: "400" },
  "at-load": { type: "string", default: "40" },
  seed: { type: "string", default: "1" },
  minutes: { type: "string", default: "600" },
});

function mutantsOf({ files, functions = [] }: Part): Omit<Mutant, "id">[] {
  const ofFunctions = functions.flatMap((name): Omit<Mutant, "id">[] => {
    const file = migrationOf(CHECKOUT, name);
    if (!file.includes(part)) return [];
    const migration = readFileSync(join(CHECKOUT, file), "utf8");
    const facts = { file, unseen: sqlFunctionIn(migration, name) };
    return sqlChangesOf(migration, name).map((change) => ({ ...change, ...facts, line: lineOf(migration, change) }));
  });
  const ofFiles = files
    .filter((file) => file.includes(part))
    .flatMap((file): Omit<Mutant, "id">[] => {
      const program = readFileSync(join(CHECKOUT, file), "utf8");
      // Tests also run the verifiers as programs.
      const isProgram = file.endsWith(".mjs");
      const facts = { file, unseen: isProgram ? ("process" as const) : undefined };
      const changes = changesOf(program, isProgram ? "js" : "ts");
      return changes.map((change) => ({ ...change, ...facts, line: lineOf(program, change) }));
    });
  return [...ofFiles, ...ofFunctions];
}

interface Row {
  readonly file: string;
  readonly mutants: number;
  readonly killed: number;
  readonly survived: number;
  readonly refused: number;
}

function table(rows: readonly Row[]): string {
  const sum = (of: (row: Row) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const [mutants, killed, survived] = [sum((row) => row.mutants), sum((row) => row.killed), sum((row) => row.survived)];
  const lines = [...rows, { file: "all", mutants, killed, survived, refused: sum((row) => row.refused) }].map((row) => {
    const score = row.killed + row.survived === 0 ? "" : (100 * row.killed) / (row.killed + row.survived);
    return { ...row, score: typeof score === "number" ? `${score.toFixed(1)} %` : score };
  });
  const names = ["file", "mutants", "killed", "survived", "refused", "score"] as const;
  const cells = [names, ...lines.map((line) => names.map((name) => String(line[name])))];
  const widths = names.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const aligned = (cell: string, column: number): string =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
  return cells.map((row) => row.map(aligned).join("  ")).join("\n");
}

const print = (line: string): void => void process.stderr.write(`${line}\n`);
const untilMs = Date.now() + Number(minutes) * 60_000;
const random = new Random(Number(seed));
const copy = copyCheckout();
let id = 0;
try {
  const chosen = PARTS.filter(({ group }) => only === undefined || only === group);
  for (const [group, parts] of Map.groupBy(chosen, (one) => one.group)) {
    const all = random.shuffled(parts.flatMap((of) => mutantsOf(of).map((mutant) => ({ of, mutant }))));
    const drawn = new Set([
      ...all.filter(({ mutant }) => !mutant.isAtLoad).slice(0, Number(sample)),
      ...all.filter(({ mutant }) => mutant.isAtLoad).slice(0, Number(atLoad)),
    ]);
    const rows: Row[] = [];
    const survivors: string[] = [];
    for (const of of parts) {
      const mutants = all
        .filter((one) => one.of === of && drawn.has(one))
        .map(({ mutant }) => ({ ...mutant, id: ++id }));
      if (mutants.length === 0) continue;
      const refused = await refusedByCompiler(copy, mutants);
      const real = mutants.filter((mutant) => !refused.has(mutant.id));
      const { killed, tried } = await tryMutants(copy, real, of, { print, untilMs });
      for (const [file, own] of Map.groupBy(mutants, (mutant) => mutant.file)) {
        const left = own.filter((mutant) => tried.has(mutant.id) && !killed.has(mutant.id));
        const counts = {
          killed: own.filter((mutant) => killed.has(mutant.id)).length,
          survived: left.length,
          refused: own.filter((mutant) => refused.has(mutant.id)).length,
        };
        rows.push({ file, mutants: counts.killed + counts.survived + counts.refused, ...counts });
        const sorted = left.toSorted((a, b) => a.start - b.start);
        survivors.push(...sorted.map(({ line, what }) => `${file}:${line}  ${what}`));
      }
    }
    rows.sort((a, b) => a.file.localeCompare(b.file));
    process.stdout.write(
      `${group}: ${drawn.size} of ${all.length} mutants, seed ${seed}\n\n${table(rows)}\n\nsurvived:\n`,
    );
    process.stdout.write(`${survivors.map((line) => `  ${line}\n`).join("")}\n`);
  }
} finally {
  copy.remove();
}
