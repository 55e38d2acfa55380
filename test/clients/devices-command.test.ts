/** `npm run cli -- devices`, as a person types it, against the whole system. */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFailed, test } from "vitest";
import { logIn, openTill } from "../support/people.ts";
import { programEnvironment, type RunningProgram, runProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const CLI = join(import.meta.dirname, "..", "..", "clients", "cli.ts");

let system: TestSystem;
let folder: TemporaryFolder;
const running: RunningProgram[] = [];
beforeAll(async () => {
  system = await sharedSystem({ claims: true });
  folder = temporaryFolder("devices-command");
});
afterAll(async () => {
  for (const program of running) program.process.kill("SIGKILL");
  await system.stop();
  folder.remove();
});

function devices(...args: readonly string[]): RunningProgram {
  const access = { BASE_URL: system.baseUrl, DATA_DIR: folder.path };
  const program = runProgram(process.execPath, [CLI, "devices", ...args], { env: programEnvironment(access) });
  running.push(program);
  return program;
}
const codeOf = (kind: string, station = 0): string =>
  system.sandbox.stations[station]?.devices.find((device) => device.kind === kind)?.enrollmentCode ?? "";

test("devices enroll, simulate, watch and report: one collection by command", async () => {
  onTestFailed(() => void process.stderr.write(running.map((program) => program.output()).join("--\n")));
  // This folder does not exist yet; the command creates it.
  const till = join(folder.path, "new", "till.json");
  const enrolled = devices("enroll", "--code", codeOf("smart_pos_companion"), "--file", till, "--json");
  expect(await enrolled.ended, enrolled.output()).toBe(0);
  const simulated = devices("simulate", "--file", till, "--outcome", "reported_declined");
  const watched = devices("watch", "--file", join(folder.path, "display.json"), "--code", codeOf("customer_display"));
  await watched.waitFor(/idle/);
  const { cashier, station } = await openTill(system);
  const lines = [{ name: "Soup", quantity: 2, unit_amount: "6.25" }];
  const { order_id } = await cashier.good<{ order_id: number }>("POST", `${station}/orders/`, { body: { lines } });
  // The companion reports unknown for a collection that exists at its first poll, because a restart may have lost its launch.
  interface Offers {
    readonly companions: readonly { readonly last_polled_at: string | null }[];
  }
  const hasPolled = async () =>
    (await cashier.good<Offers>("GET", `${station}/routes/`)).companions.some((one) => one.last_polled_at !== null);
  await expect.poll(hasPolled, { timeout: 60_000, interval: 250 }).toBe(true);
  const body = { order_id, route: "smart_pos" };
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, { body });
  await simulated.waitFor(/collecting EUR 12\.50[^]*report reported_declined of intent \d+ is recorded/);
  await watched.waitFor(/total: EUR 12\.50/);
  for (const program of [simulated, watched]) {
    program.process.kill("SIGTERM");
    expect(await program.ended).toBe(0);
  }
  const late = devices("report", "--file", till, "--intent", `${intent_id}`, "--outcome", "reported_success");
  expect(await late.ended, late.output()).toBe(0);
  expect(late.output()).toMatch(/is processing: reported_success, under the key /);
  // A fixed defect: a new enrollment of the same device deleted what the device had not reported yet.
  const stored = JSON.parse(readFileSync(till, "utf8")) as { readonly device_id: number; readonly attempt: object };
  const unreported = { intent_id, outcome: "reported_success", provider_reference: "", provider_code: "" };
  const kept = { ...stored, reports: [{ ...unreported, client_idempotency_key: "kept" }] };
  writeFileSync(till, JSON.stringify(kept));
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  await owner.good("POST", `devices/${stored.device_id}/reset/`);
  const { code } = await owner.good<{ code: string }>("POST", `devices/${stored.device_id}/enrollment-codes/`);
  const again = devices("enroll", "--code", code, "--file", till);
  expect(await again.ended, again.output()).toBe(0);
  const { device_id, attempt, reports } = kept;
  expect(JSON.parse(readFileSync(till, "utf8"))).toMatchObject({ device_id, attempt, reports });
});

test("an invalid code, an unusable file, or no service: exit code 1 and one sentence", async () => {
  const file = join(folder.path, "none.json");
  const spent = devices("enroll", "--code", "AAAAA-AAAAA", "--file", file);
  expect(await spent.ended).toBe(1);
  expect(spent.output()).toMatch(/\(enrollment_code_invalid\)\n$/);
  // The command fails before it claims the code, because it could not store the credential.
  const noFolder = join(folder.path, "text");
  writeFileSync(noFolder, "");
  const homeless = devices("enroll", "--code", "AAAAA-AAAAA", "--file", join(noFolder, "device.json"));
  expect([await homeless.ended, homeless.output()]).toEqual([
    1,
    expect.stringMatching(/^No file can be written into \S+text: /),
  ]);
  const nowhere = devices("enroll", "--code", "AAAAA-AAAAA", "--file", file, "--base-url", "http://127.0.0.1:9");
  expect([await nowhere.ended, nowhere.output()]).toEqual([
    1,
    "The service at http://127.0.0.1:9 does not answer (bad port); check --base-url and that it runs.\n",
  ]);
  // A proxy in front of a service that is down.
  const proxy = createServer((request, response) =>
    request.resume().on("end", () => response.writeHead(502).end("<html>")),
  );
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  const { port } = proxy.address() as AddressInfo;
  const down = devices("enroll", "--code", "AAAAA-AAAAA", "--file", file, "--base-url", `http://127.0.0.1:${port}`);
  expect([await down.ended, down.output()]).toEqual([
    1,
    expect.stringMatching(/^The service does not answer \(HTTP 502 .*\); check --base-url and that it runs\.\n$/),
  ]);
  proxy.close();
  const full = devices("watch", "--file", join(noFolder, "device.json"), "--code", codeOf("customer_display", 1));
  await full.waitFor(/^storage: ENOTDIR: /m);
  full.process.kill("SIGTERM");
  const unknown = devices("report", "--file", file, "--intent", "1", "--outcome", "reported_unknown");
  expect(await unknown.ended).toBe(1);
  const asks = devices("watch", "--file", file);
  expect(await asks.ended).toBe(1);
  expect(asks.output()).toMatch(/give it as --code\.\n$/);
});

test.each([
  [["dance"], "Use devices enroll"],
  [["enroll", "--file", "x"], "Give --code"],
  [["report", "--file", "x", "--intent", "1", "--outcome", "paid"], "--outcome is one of"],
])("devices %j: exit code 2 and a sentence", async (args, sentence) => {
  const program = devices(...args);
  expect(await program.ended).toBe(2);
  expect(program.output()).toContain(sentence);
});
