/**
 * Tidiness as a test: layering, sizes, names, banned words. Every rule is first watched refusing an example and letting
 * another pass, then asked about every file.
 */
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { settingsDocuments } from "../deploy/settings-documents.ts";
import { citedPathsExist, citedSectionsExist, type Library } from "./tidy/citations.ts";
import { BANS, banned, filesAreSmall, namesDescribeContent } from "./tidy/code-rules.ts";
import { unusedExports } from "./tidy/exports.ts";
import { importCycles } from "./tidy/import-cycles.ts";
import { importsGoOneWay, machinesImportNothing, packagesStayAtHome } from "./tidy/layering.ts";
import { dependenciesArePinnedAndExplained, installScriptsAreDecided } from "./tidy/package-rules.ts";
import { isIgnored, repositoryFiles } from "./tidy/repository-files.ts";
import { settingsAreExplained, settingsIn } from "./tidy/settings-rules.ts";
import { masked, type Rule, type SourceFile } from "./tidy/source-file.ts";

const files = repositoryFiles();
const fileCalled = (path: string): SourceFile => ({ path, text: files.find((file) => file.path === path)?.text ?? "" });

const library: Library = {
  paths: files.map(({ path }) => path),
  design: fileCalled("docs/design.md").text,
  contract: fileCalled("docs/contract.md").text,
};
const EXAMPLE_LIBRARY: Library = {
  paths: ["gateway/http/route.ts", "test/a.test.ts"],
  design: "## 2. Decisions\n**2.1 The log.** It is the truth.\n## 4. Open\n| a blocked device | 403 |",
  contract: "## Events\nOne every two seconds.",
};

/** A file's path and text. */
type Example = readonly [path: string, text: string];

interface Examples {
  readonly rule: Rule;
  readonly refused: readonly Example[];
  readonly allowed: readonly Example[];
}

const ban = (name: keyof typeof BANS): Rule => {
  const found = BANS[name];
  if (found === undefined) throw new Error(`There is no ban called ${name}.`);
  return banned(found);
};
const lines = (count: number): string => "x;\n".repeat(count);

const EXAMPLES: Record<string, Examples> = {
  "cited paths exist": {
    rule: citedPathsExist(EXAMPLE_LIBRARY),
    refused: [
      ["docs/a.md", "See `gateway/http/old.ts`."],
      ["services/a.ts", "/** As gateway/server has it. */"],
    ],
    allowed: [
      ["docs/a.md", "See `gateway/http/route.ts`, `gateway/http/` and test/a."],
      ["services/a.ts", 'import { b } from "../gateway/gone.ts";'],
    ],
  },
  "cited sections exist": {
    rule: citedSectionsExist(EXAMPLE_LIBRARY),
    refused: [
      ["services/a.ts", "// design §3"],
      ["services/a.ts", "// design §2.2"],
      ["services/a.ts", '// design §4, "heartbeat"'],
      ["services/a.ts", '/** Once (contract, "Errors"). */'],
    ],
    allowed: [
      ["services/a.ts", '// design §2.1, design §4, "blocked device"'],
      ["services/a.ts", '/**\n * Once (contract,\n * "every two seconds").\n */'],
    ],
  },
  "imports go one way": {
    rule: importsGoOneWay,
    refused: [
      ["machines/a.ts", 'import { b } from "../services/bus/b.ts";'],
      ["machines/views/a.ts", 'import type { b } from "../../gateway/b.ts";'],
      ["services/registry/a.ts", 'import { b } from "../settlement/b.ts";'],
      ["services/registry/sql/a.ts", 'export { b } from "../../relay/b.ts";'],
      ["services/bus/a.ts", 'import { b } from "../db/b.ts";'],
      ["services/runtime/a.ts", 'import { b } from "../db/b.ts";'],
      ["services/db/a.ts", 'import { b } from "../issues/b.ts";'],
      ["services/issues/a.ts", 'import { b } from "../providers/b.ts";'],
      ["gateway/a.ts", 'import { b } from "../services/issues/b.ts";'],
      ["services/relay/a.ts", 'import b from "../../package.json" with { type: "json" };'],
      ["services/relay/a.ts", 'import { b } from "../../gateway/b.ts";'],
      ["gateway/a.ts", 'import { b } from "../services/db/b.ts";'],
      ["gateway/http/a.ts", 'const b = await import("../../services/registry/b.ts");'],
      ["gateway/web/till/a.ts", 'import { b } from "../../../clients/device-kit/b.ts";'],
      ["gateway/web/display/a.ts", 'import { b } from "../../../clients/b.ts";'],
      ["clients/a.ts", 'import { b } from "../machines/b.ts";'],
      ["clients/a.ts", 'import "../services/bus/b.ts";'],
      ["deploy/a.ts", 'import { b } from "../services/registry/b.ts";'],
      ["deploy/embedded/a.ts", 'import { b } from "../../gateway/b.ts";'],
      ["deploy/a.ts", 'import { b } from "../services/registry/sql/settings.ts";'],
      ["services/relay/a.ts", 'import { b } from "../registry/settings.ts";'],
    ],
    allowed: [
      ["machines/station/a.ts", 'import { b } from "../b.ts";'],
      ["services/bus/a.ts", 'import { b } from "../../machines/b.ts";'],
      ["services/registry/sql/a.ts", 'import { b } from "../b.ts";'],
      ["services/registry/a.ts", 'import { b } from "../db/b.ts";'],
      ["services/providers/sql/a.ts", 'import { b } from "../../issues/b.ts";'],
      ["services/issues/sql/a.ts", 'import { b } from "../../db/b.ts";'],
      ["services/runtime/a.ts", 'import b from "../../package.json" with { type: "json" };'],
      ["services/main.ts", 'import { b } from "./registry/b.ts";'],
      ["gateway/a.ts", 'import { b } from "../services/bus/b.ts";'],
      ["gateway/web/display/a.ts", 'import { b } from "../../../clients/device-kit/b.ts";'],
      ["clients/a.ts", 'import { b } from "./b.ts";'],
      ["deploy/a.ts", 'import { b } from "../services/runtime/b.ts";'],
      ["deploy/a.ts", 'import { b } from "../services/registry/settings.ts";'],
      ["deploy/a.ts", 'import { b } from "../gateway/settings.ts";'],
      ["test/stations/a.ts", 'import { b } from "../../services/stations/b.ts";'],
      ["gateway/a.ts", `const example = 'import { b } from "../services/db/b.ts";';`],
      ["gateway/a.ts", '// never: import { b } from "../services/db/b.ts";'],
    ],
  },
  "packages stay at home": {
    rule: packagesStayAtHome,
    refused: [
      ["services/stations/a.ts", 'import postgres from "postgres";'],
      ["gateway/a.ts", 'import postgres from "postgres";'],
      ["services/bus/a.ts", 'import { App } from "uWebSockets.js";'],
      ["services/registry/a.ts", 'import { runner } from "node-pg-migrate";'],
    ],
    allowed: [
      ["services/db/a.ts", 'import postgres from "postgres";'],
      ["services/settlement/sql/a.ts", 'import type { Sql } from "postgres";'],
      ["gateway/http/a.ts", 'import { App } from "uWebSockets.js";'],
      ["gateway/a.ts", 'import { b } from "./postgres.ts";'],
    ],
  },
  "machines import xstate at most": {
    rule: machinesImportNothing,
    refused: [
      ["machines/a.ts", 'import { z } from "zod";'],
      ["machines/a.ts", 'import { readFileSync } from "node:fs";'],
    ],
    allowed: [
      ["machines/a.ts", 'import { setup } from "xstate";'],
      ["gateway/a.ts", 'import { z } from "zod";'],
    ],
  },
  "files are small": {
    rule: filesAreSmall,
    refused: [
      ["gateway/a.ts", lines(401)],
      ["deploy/a.mjs", lines(401)],
      ["test/a.test.ts", lines(601)],
      ["gateway/main.ts", lines(41)],
    ],
    allowed: [
      ["gateway/a.ts", lines(400)],
      ["test/a.test.ts", lines(600)],
      ["gateway/main.ts", lines(40)],
      ["package-lock.json", lines(9_000)],
    ],
  },
  "names describe the content of a file": {
    rule: namesDescribeContent,
    refused: [
      ["gateway/utils/a.ts", ""],
      ["services/helpers.ts", ""],
      ["services/registry/common.test.ts", ""],
      ["test/lib/a.ts", ""],
      ["misc/a.md", ""],
      ["machines/index.ts", ""],
      [".scratch.ts", ""],
    ],
    allowed: [
      ["gateway/library.ts", ""],
      ["vitest.config.ts", ""],
      ["gateway/web/index.html", ""],
    ],
  },
  "machines have no clock": {
    rule: ban("machines have no clock"),
    refused: [
      ["machines/a.ts", "const now = Date.now();"],
      ["machines/a.ts", "const now = new Date();"],
      ["machines/views/a.ts", "const now = performance.now();"],
    ],
    allowed: [
      ["machines/a.ts", "const text = new Date(atMs).toISOString();"],
      ["machines/a.ts", "// Date.now() would be impure"],
      ["machines/a.ts", 'const text = "Date.now()";'],
      ["services/stations/a.ts", "const now = Date.now();"],
    ],
  },
  "machines have no randomness": {
    rule: ban("machines have no randomness"),
    refused: [
      ["machines/a.ts", "const id = Math.random();"],
      ["machines/a.ts", "const id = crypto.randomUUID();".replace("randomUUID", "getRandomValues")],
      ["machines/a.ts", "const id = randomUUID();"],
    ],
    allowed: [["services/bus/a.ts", "const id = randomUUID();"]],
  },
  "machines do nothing": {
    rule: ban("machines do nothing"),
    refused: [
      ["machines/a.ts", "const home = process.env;"],
      ["machines/a.ts", "setTimeout(() => {}, 1);"],
      ["machines/a.ts", "fetch(url);"],
      ["machines/a.ts", "export async function load() {}"],
    ],
    allowed: [
      ["machines/a.ts", 'const status = "processing"; const processing = 1;'],
      ["services/bus/a.ts", "setTimeout(() => {}, 1);"],
    ],
  },
  "logs go through the log": {
    rule: ban("logs go through the log"),
    refused: [
      ["services/bus/a.ts", "console.log(1);"],
      ["test/bench/a.ts", "console.table(1);"],
    ],
    allowed: [
      ["deploy/a.ts", "console.log(1);"],
      ["clients/a.ts", "console.log(1);"],
      ["services/bus/a.ts", 'const word = "console.log";'],
    ],
  },
  "processes end in order": {
    rule: ban("processes end in order"),
    refused: [["gateway/a.ts", "process.exit(1);"]],
    allowed: [
      ["gateway/main.ts", "process.exit(1);"],
      ["services/runtime/a.ts", "process.exit(1);"],
      ["deploy/a.ts", "process.exit(1);"],
      ["test/deploy/programs/a.ts", "process.exit(1);"],
    ],
  },
  "no process trusts its machine's clock": {
    rule: ban("no process trusts its machine's clock"),
    refused: [["services/relay/a.ts", "const atMs = Date.now();"]],
    allowed: [
      ["services/relay/a.ts", "const atMs = performance.now();"],
      ["services/bus/bus-clock.ts", "const atMs = Date.now();"],
      ["gateway/web/till/a.ts", "const atMs = Date.now();"],
      ["clients/a.ts", "const atMs = Date.now();"],
    ],
  },
  "folders are made one by one": {
    rule: ban("folders are made one by one"),
    refused: [
      ["deploy/a.ts", "mkdirSync(folder, { recursive: true });"],
      ["clients/a.ts", "await mkdir(dirname(path), { recursive: true, mode: 0o700 });"],
    ],
    allowed: [
      ["deploy/a.ts", "mkdirSync(folder, { mode: 0o700 });"],
      ["deploy/a.ts", "rmSync(folder, { recursive: true });"],
      ["test/a.test.ts", "mkdirSync(folder, { recursive: true });"],
    ],
  },
  "every test runs": {
    rule: ban("every test runs"),
    refused: [
      ["test/a.test.ts", 'it.skip("x", () => {});'],
      ["test/a.test.ts", 'describe.only("x", () => {});'],
      ["test/a.test.ts", 'test.todo("x");'],
      ["test/a.test.ts", 'it.concurrent.skip("x", () => {});'],
      ["test/a.test.ts", 'it.skipIf(isSlow)("x", () => {});'],
    ],
    allowed: [
      ["test/a.test.ts", 'it.each([1])("skip", () => {});'],
      ["services/bus/a.ts", "rows.skip(3);"],
    ],
  },
  "migrations only add": {
    rule: ban("migrations only add"),
    refused: [
      ["services/db/migrations/0099_a.sql", "alter table a drop column b;"],
      ["services/db/migrations/0099_a.sql", "alter table a alter column b set not null;"],
      ["services/db/migrations/0099_a.sql", "alter table a rename to b;"],
    ],
    allowed: [
      ["services/db/migrations/0041_a.sql", "alter table a drop column b;"],
      ["services/db/migrations/0099_a.sql", "alter table a add column b text; drop index c;"],
      ["services/db/migrations/0099_a.sql", "-- Unused since 0.4.0.\nalter table a drop column b;"],
    ],
  },
  "migrations are not cited": {
    rule: ban("migrations are not cited"),
    refused: [
      ["services/a.ts", "/** The function `f` (services/db/migrations/0017_f.sql). */"],
      ["docs/a.md", "See `0017_f.sql`."],
    ],
    allowed: [
      ["services/a.ts", "/** The function `f` (services/db/schema.sql). */"],
      ["services/db/migrations/0099_a.sql", "-- Replaces the function of 0017_f.sql."],
      ["test/a.test.ts", 'const made = "0017_f.sql"; // 0017_f.sql'],
    ],
  },
  "types are not switched off": {
    rule: ban("types are not switched off"),
    refused: [["services/bus/a.ts", "const x = y as any;"]],
    allowed: [["services/bus/a.ts", "const any = y as unknown; // as any would hide it"]],
  },
  "the compiler is not silenced": {
    rule: ban("the compiler is not silenced"),
    refused: [
      ["services/bus/a.ts", "// @ts-ignore"],
      ["test/a.ts", "// @ts-expect-error it is wrong"],
    ],
    allowed: [["services/bus/a.ts", "// the compiler would need ts-ignore here"]],
  },
  "nothing is left for later": {
    rule: ban("nothing is left for later"),
    refused: [
      ["services/bus/a.ts", "// TODO: retry"],
      ["services/db/migrations/a.sql", "-- FIXME index"],
      ["README.md", "TODO"],
    ],
    allowed: [["services/bus/a.ts", "const todo = 1;"]],
  },
  "exports have names": {
    rule: ban("exports have names"),
    refused: [
      ["services/bus/a.ts", "export default 1;"],
      ["services/bus/a.ts", "export { a as default };"],
    ],
    allowed: [
      ["vitest.config.ts", "export default 1;"],
      ["services/bus/a.ts", 'import a, { b } from "a";'],
    ],
  },
  "one place writes transactions": {
    rule: ban("one place writes transactions"),
    refused: [
      ["services/registry/a.ts", "sql`INSERT INTO transactions (id) values (1)`"],
      ["gateway/a.ts", "sql`insert into public.transactions`"],
      ["deploy/a.sql", "insert\n into transactions"],
    ],
    allowed: [
      ["services/settlement/a.ts", "sql`insert into transactions`"],
      ["services/registry/a.ts", "sql`insert into transactions_copy`"],
      ["test/settlement/a.test.ts", "sql`insert into transactions`"],
    ],
  },
  "no machine's paths": {
    rule: ban("no machine's paths"),
    refused: [
      ["deploy/a.ts", ["const path = '", "home/somebody/project'"].join("/")],
      ["README.md", ["cd ", "root/project"].join("/")],
    ],
    allowed: [
      ["gateway/a.ts", 'const path = "/api/payments/v1/devices/me/";'],
      ["deploy/a.ts", ["const path = join(home, '..", "home/x/y')"].join("/")],
    ],
  },
  "no registry's address": {
    rule: ban("no registry's address"),
    refused: [
      [".npmrc", "registry=https://registry.npmjs.org/"],
      ["package-lock.json", '"resolved": "https://somewhere/a.tgz"'],
    ],
    allowed: [["services/registry/a.ts", 'const name = "registry";']],
  },
};

/** An example with a title that fits on a line. */
const titled = (examples: readonly Example[]) =>
  examples.map(([path, text]) => ({ path, text, title: `${path}: ${text.split("\n")[0]?.slice(0, 60)}` }));

/** The rules whose examples have a separate library. */
const HELD_BY: Record<string, Rule> = {
  "cited paths exist": citedPathsExist(library),
  "cited sections exist": citedSectionsExist(library),
};

describe.each(Object.entries(EXAMPLES))("%s", (name, { rule, refused, allowed }) => {
  it.each(titled(refused))("refuses, in one sentence, $title", ({ path, text }) => {
    const complaints = rule({ path, text });
    expect(complaints).toHaveLength(1);
    expect(complaints[0]).toMatch(/^\S+ .+\.$/s);
    expect(complaints[0]?.startsWith(path)).toBe(true);
  });

  it.each(titled(allowed))("lets pass $title", ({ path, text }) => {
    expect(rule({ path, text })).toEqual([]);
  });

  it("holds in every file", () => {
    expect(files.flatMap(HELD_BY[name] ?? rule)).toEqual([]);
  });
});

describe("the rules", () => {
  it("are all watched refusing something", () => {
    expect(Object.keys(BANS).filter((name) => EXAMPLES[name] === undefined)).toEqual([]);
  });

  it("see the files of the repository", () => {
    const seen = new Set(files.map((file) => file.path.split("/")[0]));
    for (const folder of ["machines", "services", "gateway", "clients", "deploy", "test"])
      expect(seen).toContain(folder);
    expect(files.length).toBeGreaterThan(100);
  });

  it("distinguish code from comments, strings, templates and patterns", () => {
    const text = [
      'const a = "x // y"; // one',
      "const b = `x ${f(`{${c}`)} /* y */`; /* two",
      "three */ const d = e / f; const g = /[\"'/]/.test(h); const i = 1;",
    ].join("\n");
    const code = masked(text, "comments and strings");
    expect(code.split("\n")).toHaveLength(3);
    expect(code.replaceAll(/\s+/g, " ").trim()).toBe(
      "const a = ; const b = f( c ) ; const d = e / f; const g = .test(h); const i = 1;",
    );
    expect(masked(text, "comments")).toContain('"x // y"');
    expect(masked(text, "comments")).not.toMatch(/one|two|three/);
  });
});

describe("the README", () => {
  it("is short: what it is, two commands, one picture, one request traced, where things live, links", () => {
    expect(Buffer.byteLength(fileCalled("README.md").text)).toBeLessThanOrEqual(9_000);
  });
});

describe("the documents", () => {
  it("link to files that are there", () => {
    const paths = new Set(files.map(({ path }) => path));
    const links = files.filter(({ path }) => path.endsWith(".md")).flatMap(linksOf);
    expect(links.length).toBeGreaterThan(10);
    expect(links.filter(({ target }) => !paths.has(target) && !paths.has(`${target}/README.md`))).toEqual([]);
  });
});

/** The relative links of a document, resolved from the repository's root. */
function linksOf({ path, text }: SourceFile): { readonly from: string; readonly target: string }[] {
  return [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map(([, link = ""]) => ({
    from: path,
    target: posix.normalize(posix.join(posix.dirname(path), link)).replace(/\/$/, ""),
  }));
}

describe("import cycles", () => {
  const file = (path: string, ...imported: readonly string[]): SourceFile => ({
    path,
    text: imported.map((name) => `import type { x } from "${name}";`).join("\n"),
  });

  it.each([
    ["of two files", [file("gateway/a.ts", "./b.ts"), file("gateway/b.ts", "./a.ts")]],
    [
      "of three files in two folders",
      [
        file("services/a/a.ts", "../bus/b.ts"),
        file("services/bus/b.ts", "./c.ts"),
        file("services/bus/c.ts", "../a/a.ts"),
      ],
    ],
  ])("are refused, in one sentence: %s", (_name, examples) => {
    const [first] = examples;
    expect(importCycles(examples)).toEqual([expect.stringMatching(new RegExp(`^${first?.path} imports .+\\.$`))]);
  });

  it("do not include two ways to one file, packages and tests", () => {
    const diamond = [file("a/a.ts", "./b.ts", "./c.ts"), file("a/b.ts", "./d.ts"), file("a/c.ts", "./d.ts", "zod")];
    const tests = [file("test/a.ts", "./b.ts"), file("test/b.ts", "./a.ts")];
    expect(importCycles([...diamond, file("a/d.ts"), ...tests])).toEqual([]);
  });

  it("are in no file", () => {
    expect(importCycles(files)).toEqual([]);
  });
});

describe("exports that no other file imports", () => {
  const a = { path: "services/bus/a.ts", text: "export interface A {}\nexport const b = (a: A) => a;" };
  const importing = (text: string): SourceFile => ({ path: "services/relay/c.ts", text });

  it("are refused, in one sentence each", () => {
    const seen = [a, importing('// A\nimport { b } from "../bus/a.ts";')];
    expect(unusedExports(seen)).toEqual([expect.stringMatching(/^services\/bus\/a.ts exports A, .+\.$/)]);
    expect(unusedExports([a])).toHaveLength(2);
  });

  it.each(['import type { A, b } from "../bus/a.ts";', 'import * as a from "../bus/a.ts"; const c: a.A = a.b;'])(
    "are not those of: %s",
    (text) => expect(unusedExports([a, importing(text)])).toEqual([]),
  );

  it("are in no file", () => {
    expect(unusedExports(files)).toEqual([]);
  });
});

describe("data folders", () => {
  it.each([".data/secrets.json", ".data3/secrets.json"])("%s stays out of the repository", (path) => {
    expect(isIgnored(path)).toBe(true);
    expect(isIgnored("deploy/data-folder.ts")).toBe(false);
  });
});

describe("dependencies", () => {
  const TABLE = "| package | why |\n|---|---|\n| `a`, `@s/b` | because |\n";

  it("that are not exact or not explained are refused, in one sentence each", () => {
    const packageJson = JSON.stringify({
      dependencies: { a: "^1.2.3", "@s/b": "npm:other@1.2.3" },
      devDependencies: { c: "1.2.3", a2: "latest" },
    });
    expect(dependenciesArePinnedAndExplained(packageJson, TABLE)).toEqual([
      'package.json asks for a as "^1.2.3"; pin one exact version.',
      "CONTRIBUTING.md's table of dependencies does not say why c is there.",
      'package.json asks for a2 as "latest"; pin one exact version.',
      "CONTRIBUTING.md's table of dependencies does not say why a2 is there.",
    ]);
  });

  it("are pinned exactly and explained in CONTRIBUTING.md", () => {
    const complaints = dependenciesArePinnedAndExplained(
      fileCalled("package.json").text,
      fileCalled("CONTRIBUTING.md").text,
    );
    expect(complaints).toEqual([]);
  });

  it("have their install scripts allowed or denied, by name", () => {
    const lockfile = '{"packages": {"": {"hasInstallScript": true}, "node_modules/a": {"hasInstallScript": true}}}';
    expect(installScriptsAreDecided('{"allowScripts": {"a@1.0.0": true}}', lockfile)).toHaveLength(1);
    expect(installScriptsAreDecided('{"allowScripts": {"a": false}}', lockfile)).toEqual([]);
    const complaints = installScriptsAreDecided(fileCalled("package.json").text, fileCalled("package-lock.json").text);
    expect(complaints).toEqual([]);
  });
});

describe("settings", () => {
  const schema = (path: string): SourceFile => ({ path, text: "z.object({\n  /** OTHER: */\n  LIMIT_MS: x,\n});" });
  const reader: SourceFile = { path: "deploy/a.ts", text: 'f(process.env["LIMIT_B"], environment.LIMIT_C, env.PATH);' };

  it("are found in schemas of settings and wherever code reads the environment", () => {
    expect(settingsIn(schema("services/a/settings.ts"))).toEqual(["LIMIT_MS"]);
    expect(settingsIn(schema("services/a/codes.ts"))).toEqual([]);
    expect(settingsIn(reader)).toEqual(["LIMIT_B", "LIMIT_C"]);
    expect(settingsIn({ ...reader, path: "test/a.ts" })).toEqual([]);
  });

  it("that have no row are refused, in one sentence each", () => {
    expect(
      settingsAreExplained([reader], "| `LIMIT_B`, `X` | why |\n\nLIMIT_C is in a sentence.\n| x | LIMIT_C |"),
    ).toEqual(["deploy/a.ts reads LIMIT_C, which has no row in docs/settings.md."]);
  });

  it("all have a row in docs/settings.md", () => {
    expect(files.flatMap(settingsIn).length).toBeGreaterThan(40);
    expect(settingsAreExplained(files, fileCalled("docs/settings.md").text)).toEqual([]);
  });

  it("of the processes: docs/settings.md and the example are what the schemas say (npm run settings)", async () => {
    for (const { path, text } of await settingsDocuments()) expect(readFileSync(path, "utf8"), path).toBe(text);
  });
});
