/** The suite against the whole system: it passes, it says so, and nothing is left behind. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { logIn, type Person } from "../support/people.ts";
import { programEnvironment, runProgram } from "../support/running-program.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const SUITE = join(import.meta.dirname, "..", "..", "clients", "conformance.ts");

let system: TestSystem;
let folder: TemporaryFolder;
let owner: Person;
beforeAll(async () => {
  system = await startSystem({ sandboxProvider: true });
  folder = temporaryFolder("conformance");
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(async () => {
  await system.stop();
  folder.remove();
});

const seed = async (): Promise<string> => {
  const body = { filial_id: system.sandbox.filialId, name: "Conformance", currency: "EUR" };
  return String((await owner.good<{ sandbox_id: number }>("POST", "sandboxes/", { body })).sandbox_id);
};
function conformance(...args: readonly string[]) {
  const { email: OWNER_EMAIL, password: OWNER_PASSWORD } = system.owner;
  const access = { BASE_URL: system.baseUrl, DATA_DIR: folder.path, OWNER_EMAIL, OWNER_PASSWORD };
  return runProgram(process.execPath, [SUITE, ...args], { env: programEnvironment(access) });
}

test("all checks pass within a minute, and nothing is left behind", async () => {
  const json = join(folder.path, "result.json");
  const program = conformance("--sandbox", await seed(), "--json", json);
  expect(await program.ended, program.output()).toBe(0);
  const result = JSON.parse(readFileSync(json, "utf8")) as { duration_ms: number; checks: { outcome: string }[] };
  console.log(program.output());
  expect(result.checks.every(({ outcome }) => outcome === "passed")).toBe(true);
  expect(result.duration_ms).toBeLessThan(60_000);
});
