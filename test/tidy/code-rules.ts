/** Rules about files: their size, their names, and forbidden text. */
import { baseName, isCode, isTest, linesWith, masked, type Rule, type SourceFile } from "./source-file.ts";

const MAX_LINES = 400;
const MAX_TEST_LINES = 600;
/** A main file reads its settings, builds and runs. */
const MAX_MAIN_LINES = 40;

export const filesAreSmall: Rule = (file) => {
  if (!isCode(file)) return [];
  const lines = file.text.trimEnd().split("\n").length;
  const limit = isTest(file) ? MAX_TEST_LINES : baseName(file) === "main.ts" ? MAX_MAIN_LINES : MAX_LINES;
  return lines <= limit ? [] : [`${file.path} has ${lines} lines; split it, the limit is ${limit}.`];
};

const SHAPELESS = new Set(["utils", "util", "helpers", "helper", "common", "misc", "lib", "shared-code"]);

export const namesDescribeContent: Rule = (file) => {
  const complaints: string[] = [];
  for (const part of file.path.split("/")) {
    const name = part.replace(/\..*$/, "");
    if (SHAPELESS.has(name))
      complaints.push(`${file.path} is called "${name}", which has no meaning; name what it holds.`);
  }
  if (/^index\.(ts|mts|mjs|js)$/.test(baseName(file)))
    complaints.push(`${file.path} is a barrel; import from the file that has the thing.`);
  if (isCode(file) && !file.path.includes("/") && !file.path.endsWith(".config.ts"))
    complaints.push(`${file.path} is at the root, where only configuration belongs; move or delete it.`);
  return complaints;
};

/** A forbidden pattern, where it is forbidden, and the sentence of the complaint after the place. */
interface Ban {
  readonly pattern: RegExp;
  readonly in: (file: SourceFile) => boolean;
  readonly reads: "code" | "code and comments" | "everything";
  readonly because: string;
}

const isMachine = ({ path }: SourceFile): boolean => path.startsWith("machines/");
const isProductCode = (file: SourceFile): boolean => isCode(file) && !isTest(file);
const isIn = (file: SourceFile, ...folders: readonly string[]): boolean =>
  folders.some((folder) => file.path.startsWith(`${folder}/`));

/** vitest asks a global set-up file and a runner for their default exports. */
const DEFAULT_EXPORT_ASKED = new Set(["test/support/global-servers.ts", "test/mutants/runner.ts"]);

/** The only statement that writes transactions is SQL of the payment seam, which a migration installs. */
const SEAM_FOLDERS = ["services/settlement", "services/db/migrations"];
/** Shows the result of the migrations. */
const GENERATED_SCHEMA = "services/db/schema.sql";

/** Files that compare both clocks of a machine, or whose times are only for people. */
const MACHINE_CLOCK_READERS = new Set([
  "services/bus/beats.ts",
  "services/bus/bus-clock.ts",
  "services/webhook-signer/clock.ts",
  "services/webhook-signer/http/sender.ts",
  "services/webhook-signer/sending/owner-sender.ts",
  "services/webhook-signer/sending/owners.ts",
  "gateway/api/reconciliation/issue-json.ts",
]);

/** The newest migration of 0.2.0; no older version runs on this schema. */
const FIRST_RELEASE = 41;
const isLaterMigration = ({ path }: SourceFile): boolean => {
  const [, number] = /^services\/db\/migrations\/(\d{4})_[^/]+\.sql$/.exec(path) ?? [];
  return number !== undefined && Number(number) > FIRST_RELEASE;
};

export const BANS: Record<string, Ban> = {
  "migrations only add": {
    pattern:
      /\bdrop (?:table|column|function|trigger)\b|\brename (?:to|column)\b|\bset not null\b|\balter column \w+ (?:set data )?type\b/i,
    // A migration may drop a column that no version uses any more: it says since which version.
    in: (file) => isLaterMigration(file) && !/^-- Unused since \d+\.\d+\.\d+/m.test(file.text),
    reads: "everything",
    because: "but processes of the version before run on this schema; add now, and remove a version later.",
  },
  "migrations are not cited": {
    pattern: /\b\d{4}_\w+\.sql\b/,
    in: (file) => (isProductCode(file) || file.path.endsWith(".md")) && file.path !== "CHANGELOG.md",
    reads: "code and comments",
    because: "but a later migration may replace what it made; cite `services/db/schema.sql`, which has the result.",
  },
  "machines have no clock": {
    pattern: /\bDate\.now\b|\bnew Date\(\s*\)|\bDate\(\s*\)|\bperformance\b/,
    in: (file) => isMachine(file) && isCode(file),
    reads: "code",
    because: "but time is an input of a machine.",
  },
  "machines have no randomness": {
    pattern: /\bMath\.random\b|\bcrypto\b|\brandomUUID\b/,
    in: (file) => isMachine(file) && isCode(file),
    reads: "code",
    because: "but ids are an input of a machine.",
  },
  "machines do nothing": {
    pattern: /\bprocess\b\.|\bfetch\(|\bset(?:Timeout|Interval|Immediate)\b|\bqueueMicrotask\b|\bawait\b|\basync\b/,
    in: (file) => isMachine(file) && isCode(file),
    reads: "code",
    because: "but a machine is a pure function.",
  },
  "logs go through the log": {
    pattern: /\bconsole\.\w+/,
    in: (file) => isCode(file) && !isIn(file, "deploy", "clients"),
    reads: "code",
    because: "but only deploy and the virtual devices print; use the log.",
  },
  "processes end in order": {
    pattern: /\bprocess\.exit\(/,
    in: (file) => isProductCode(file) && !isIn(file, "deploy", "services/runtime") && baseName(file) !== "main.ts",
    reads: "code",
    because: "but only the lifecycle ends a process.",
  },
  "no process trusts its machine's clock": {
    pattern: /\bDate\.now\b/,
    in: (file) =>
      isProductCode(file) &&
      isIn(file, "services", "gateway") &&
      !isIn(file, "gateway/web") &&
      !MACHINE_CLOCK_READERS.has(file.path),
    reads: "code",
    because:
      "but that clock may be wrong; measure by `performance.now()`, and date by the bus's clock or the database's.",
  },
  "folders are made one by one": {
    pattern: /\bmkdir(?:Sync)?\(.*\brecursive\b/,
    in: isProductCode,
    reads: "code",
    because: "but on Node 22 that never returns below /proc or /sys; use `makeFolder`.",
  },
  "every test runs": {
    pattern:
      /\b(?:it|test|describe|suite|bench)(?:\.\w+)*\.(?:skip|only|todo|skipIf|fails)\b|\.runIf\((?!onlyWhere\()|\bx(?:it|describe)\(/,
    in: (file) => isTest(file) && isCode(file),
    reads: "code",
    because: "but every test runs every time, or says that it does not: `runIf(onlyWhere(…))`.",
  },
  "types are not switched off": {
    pattern: /\bas any\b|<any>/,
    in: isCode,
    reads: "code",
    because: "but a type that is not known is `unknown`.",
  },
  "the compiler is not silenced": {
    pattern: /@ts-(?:ignore|expect-error|nocheck)\b/,
    in: isCode,
    reads: "code and comments",
    because: "but the compiler is right until the types say otherwise.",
  },
  "nothing is left for later": {
    pattern: /\b(?:TODO|FIXME)\b/,
    in: () => true,
    reads: "code and comments",
    because: "but what is not done is an issue, not a comment.",
  },
  "exports have names": {
    pattern: /\bexport default\b|\bas default\b/,
    in: (file) => isCode(file) && !file.path.endsWith(".config.ts") && !DEFAULT_EXPORT_ASKED.has(file.path),
    reads: "code",
    because: "but an export has one name everywhere; only configuration files export a default.",
  },
  "one place writes transactions": {
    pattern: /\binsert\s+into\s+(?:\w+\.)?transactions\b/i,
    in: (file) =>
      !isTest(file) && !file.path.endsWith(".md") && file.path !== GENERATED_SCHEMA && !isIn(file, ...SEAM_FOLDERS),
    reads: "everything",
    because: "but only the payment seam writes transactions (I2).",
  },
  "no machine's paths": {
    pattern: /(?<![\w.~-])\/(?:work|root|Users\/\w+|home\/[a-z][\w-]*)\/[\w.-]+/,
    in: () => true,
    reads: "everything",
    because: "but a path of one machine means nothing on another one.",
  },
  "no registry's address": {
    pattern: /\bregistry\.(?:npmjs|yarnpkg|npmmirror)\.|\bartifactory\b|\bverdaccio\b|"resolved":/i,
    in: ({ path }) => !path.startsWith("test/tidy"),
    reads: "everything",
    because: "but where packages come from is the installer's own business.",
  },
};

/** Makes a rule of a ban: one complaint for each place. */
export function banned(ban: Ban): Rule {
  return (file) => {
    if (!ban.in(file)) return [];
    const text = ban.reads === "everything" || !isCode(file) ? file.text : masked(file.text, MASKED[ban.reads]);
    return linesWith(text, ban.pattern).map(({ line, found }) => `${file.path}:${line} has "${found}", ${ban.because}`);
  };
}

const MASKED = { code: "comments and strings", "code and comments": "strings" } as const;
