/** Two runs of the whole suite at the same time: both pass within a minute, and nothing is left behind. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";
import { type Result, runSuite, seedSandbox, startRunOf, untilRunOf } from "./runs.ts";

let system: TestSystem;
let folder: TemporaryFolder;
let owner: Person;
beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  folder = temporaryFolder("conformance");
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(async () => {
  await system.stop();
  folder.remove();
});

const seed = (): Promise<string> => seedSandbox(owner, system.sandbox.filialId);

test("two runs at two sandboxes, by command and by API: all checks pass in a minute, and nothing is left behind", async () => {
  const [byCommand, byApi] = [await seed(), await seed()];
  const runId = await startRunOf(owner, byApi);
  const again = { body: { sandbox_id: Number(byApi) } };
  await owner.refused("conflict", "POST", "conformance-runs/", again);
  const file = (end: string): string => join(folder.path, `result.${end}`);
  const files = { "json-file": file("json"), junit: file("xml"), html: file("html") };
  const options = Object.entries(files).flatMap(([name, path]) => [`--${name}`, path]);
  const program = runSuite({ baseUrl: system.baseUrl, dataDir: join(folder.path, "data"), by: system.owner }, [
    "--sandbox",
    byCommand,
    ...options,
  ]);
  const code = await program.ended;
  const text = program.output();
  expect(code, text).toBe(0);
  const result = JSON.parse(readFileSync(files["json-file"], "utf8")) as Result;
  expect(result.checks.every(({ outcome }) => outcome === "passed")).toBe(true);
  expect(result.left_behind).toEqual([]);
  expect(result.duration_ms).toBeLessThan(60_000);
  expect(text).toContain(`${result.checks.length} passed, 0 failed, 0 not run`);
  const junit = readFileSync(files.junit, "utf8");
  expect(junit).toContain(`<testsuite name="conformance" tests="${result.checks.length + 1}" failures="0" errors="0"`);
  expect(readFileSync(files.html, "utf8").match(/<tr class="passed">/g)).toHaveLength(result.checks.length);
  const run = await untilRunOf(owner, runId, ({ status }) => status !== "running");
  expect(run).toMatchObject({ status: "passed", passed: result.checks.length, left_behind: [], problem: null });
  expect(run.checks.map(({ id }) => id)).toEqual(result.checks.map(({ id }) => id));
  const { sandboxes } = await owner.good<{ sandboxes: { sandbox_id: number; companion: { status: string } }[] }>(
    "GET",
    "sandboxes/",
  );
  for (const sandboxId of [byCommand, byApi])
    expect(sandboxes.find((each) => String(each.sandbox_id) === sandboxId)).toMatchObject({
      companion: { status: "pending" },
    });
});
