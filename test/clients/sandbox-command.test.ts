/** `npm run cli -- sandbox`, as a person types it, against the whole system. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { enrollDevice } from "../support/devices.ts";
import { logIn } from "../support/people.ts";
import { programEnvironment, runProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const CLI = join(import.meta.dirname, "..", "..", "clients", "cli.ts");

let system: TestSystem;
let folder: TemporaryFolder;
beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  folder = temporaryFolder("sandbox-command");
});
afterAll(async () => {
  await system.stop();
  folder.remove();
});

async function sandbox(...args: readonly string[]) {
  const { email: OWNER_EMAIL, password: OWNER_PASSWORD } = system.owner;
  const access = { BASE_URL: system.baseUrl, DATA_DIR: folder.path, OWNER_EMAIL, OWNER_PASSWORD };
  const program = runProgram(process.execPath, [CLI, "sandbox", ...args], { env: programEnvironment(access) });
  return { code: await program.ended, text: program.output() };
}
const filial = (): string => String(system.sandbox.filialId);

test("sandbox seed: prints a code and a log-in that are valid; then list, reset and delete", async () => {
  const seeded = await sandbox("seed", "--filial", filial(), "--name", "By command");
  expect(seeded, seeded.text).toMatchObject({ code: 0 });
  const [, id = "", station = ""] = /Sandbox (\d+) is ready: "By command" is station (\d+)\./.exec(seeded.text) ?? [];
  const [, code = ""] = /display {4}device \d+\tenrollment code (\S+)/.exec(seeded.text) ?? [];
  const [, email = "", password = ""] = /cashier {4}(\S+)\tpassword (\S+)/.exec(seeded.text) ?? [];
  await enrollDevice(system.baseUrl, code);
  await (await logIn(system.baseUrl, "cashier", { email, password })).good("POST", `stations/${station}/lease/`);

  expect((await sandbox("list")).text).toContain(`${id}\tstation ${station}\tfilial ${filial()}\tBy command`);
  const reset = await sandbox("reset", id, "--json");
  const fresh = JSON.parse(reset.text.trim().split("\n").at(-1) ?? "") as { display: { enrollment_code: string } };
  expect(fresh.display.enrollment_code).not.toBe(code);
  expect(await sandbox("delete", id)).toMatchObject({ code: 0 });
  expect((await sandbox("list")).text).not.toContain("By command");
  const gone = await sandbox("reset", id);
  expect(gone, gone.text).toMatchObject({ code: 1 });
  expect(gone.text.trim().split("\n").at(-1)).toMatch(/\(not_found\)$/);
});

test("sandbox list, when the reader of its output ends early: the owner's session has ended", async () => {
  const { email: OWNER_EMAIL, password: OWNER_PASSWORD } = system.owner;
  const access = { BASE_URL: system.baseUrl, DATA_DIR: folder.path, OWNER_EMAIL, OWNER_PASSWORD };
  const program = runProgram(process.execPath, [CLI, "sandbox", "list"], { env: programEnvironment(access) });
  program.process.stdout?.destroy();
  expect([await program.ended, program.output()]).toEqual([0, ""]);
  const sql = openDatabase({ url: system.database.url, name: "sandbox command test", maxConnections: 1 });
  const { email } = system.owner;
  const open = await sql`
    select session_id from sessions join users using (user_id) where email = ${email} and sessions.ended_at is null`;
  await closeDatabase(sql);
  expect([...open]).toEqual([]);
});

test.each([
  [["plant"], "Use sandbox seed, list, reset or delete"],
  [["seed", "--name", "No filial"], "Give --filial"],
  [["reset", "seven"], "the sandbox is a number"],
  [["reset", "1", "2"], 'There is one argument too many, "2"'],
])("sandbox %j: exit code 2 and a sentence", async (args, sentence) => {
  const { code, text } = await sandbox(...args);
  expect({ code, text }).toMatchObject({ code: 2, text: expect.stringContaining(sentence) as string });
});
