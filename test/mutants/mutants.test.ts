/** The short form of `npm run mutants`: a small program with a change that its test notices and one that it does not. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { changesOf, lineOf, withSwitches } from "./change.ts";
import { migrationOf, sqlChangesOf, sqlFunctionIn } from "./sql-change.ts";
import { tryMutants } from "./trial.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const PROGRAM = `
const ADULT: { readonly age: number } = { age: 18 };
export const isAdult = (age: number): boolean => age >= ADULT.age;
export function shout(text: string): string {
  return text.trim();
}
`;
const TESTS = `
import { expect, test } from "vitest";
import { isAdult, shout } from "./program.ts";
test("18 is an adult, 17 is none", () => {
  expect([isAdult(18), isAdult(17)]).toEqual([true, false]);
  expect(shout("a")).toBe("a");
});
`;

const folder = temporaryFolder("mutants-test");
afterAll(() => folder.remove());

test("a small program: a mutant that its test notices is killed, another one survives", async () => {
  mkdirSync(folder.path, { recursive: true });
  symlinkSync(join(CHECKOUT, "node_modules"), join(folder.path, "node_modules"));
  writeFileSync(join(folder.path, "program.ts"), PROGRAM);
  writeFileSync(join(folder.path, "program.test.ts"), TESTS);
  const mutants = changesOf(PROGRAM, "ts").map((change, index) => {
    return { ...change, id: index + 1, file: "program.ts", line: lineOf(PROGRAM, change), unseen: undefined };
  });
  const messages: string[] = [];
  // The test must not remove the compiled files of this run, because other workers load some of them now.
  const cache = join(CHECKOUT, "node_modules", ".vitest-cache");
  const compiled = () => readdirSync(cache).filter((name) => /^[0-9a-f]{40}$/.test(name));
  const compiledBefore = compiled();
  const tests = { tests: ["program.test.ts"], servers: false };
  const { killed } = await tryMutants(folder, mutants, tests, {
    print: (message) => void messages.push(message),
    untilMs: Number.MAX_SAFE_INTEGER,
  });
  const survivors = mutants.filter(({ id }) => !killed.has(id));
  expect(messages).toEqual([]);
  expect(compiled()).toEqual(expect.arrayContaining(compiledBefore));
  expect(mutants.map(({ what }) => what)).toEqual([
    "without age: 18",
    "18 → 19",
    "age >= ADULT.age → undefined",
    "age >= ADULT.age → age > ADULT.age",
    "age >= ADULT.age → age < ADULT.age",
    "return at the start",
    "text.trim() → (text)",
  ]);
  expect(survivors.map(({ line, what }) => `${line} ${what}`)).toEqual(["5 text.trim() → (text)"]);
  expect(readFileSync(join(folder.path, "program.ts"), "utf8")).toBe(PROGRAM);
});

test("a program with every mutant switched off: behaves as before", async () => {
  const changes = changesOf(PROGRAM, "ts").map((change, index) => ({ ...change, id: index + 1 }));
  const none = join(folder.path, "none");
  writeFileSync(none, "0");
  const file = join(folder.path, "switched.ts");
  writeFileSync(file, withSwitches(PROGRAM, changes, none));
  const { isAdult, shout } = (await import(file)) as {
    readonly isAdult: (age: number) => boolean;
    readonly shout: (text: string) => string;
  };
  expect([isAdult(18), isAdult(17), shout(" a ")]).toEqual([true, false, "a"]);
});

test.each([
  ["settle_intent", 60],
  ["names_of_settlement", 15],
])("the SQL function %s: its changes are in the body that the database has, outside comments", (name, least) => {
  const migration = readFileSync(join(CHECKOUT, migrationOf(CHECKOUT, name)), "utf8");
  const { start, end } = sqlFunctionIn(migration, name);
  const [, body = ""] = migration.slice(start, end).split("$$");
  expect(readFileSync(join(CHECKOUT, "services/db/schema.sql"), "utf8")).toContain(body);
  const changes = sqlChangesOf(migration, name);
  expect(changes.length).toBeGreaterThan(least);
  for (const change of changes) {
    expect(change.start).toBeGreaterThan(start);
    expect(change.end).toBeLessThan(end);
    expect(migration.slice(migration.lastIndexOf("\n", change.start), change.start)).not.toContain("--");
  }
});
