/** The virtual companion and display as programs: real clients of a real system, also when something fails. */
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { KIT_LIMITS } from "../../clients/device-kit/limits.ts";
import { clientLimits } from "../../clients/limits.ts";
import { apiClient } from "../support/api-client.ts";
import { newCode } from "../support/devices.ts";
import { logIn, type Person } from "../support/people.ts";
import { isRunning, programEnvironment, type RunningProgram, runProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

/** A device backs off up to half a minute, and each test starts one or two processes on a busy machine. */
const TEST_MS = 400_000;
const PATIENCE = { timeout: 120_000, interval: 250 };
/** After this time the throttle allows a full burst again. */
const BURST_MS = 10_000;
/** Two polls of the companion and a second. */
const POLLS_MS = 2 * KIT_LIMITS.pollEveryMs + 1_000;
const CLIENTS = join(import.meta.dirname, "..", "..", "clients");

let system: TestSystem;
let folder: TemporaryFolder;
let cashier: Person;
let owner: Person;
let station: string;
let companionId: number;
const running: RunningProgram[] = [];

beforeAll(async () => {
  system = await sharedSystem({ claims: true });
  folder = temporaryFolder("clients");
  [cashier, owner] = await Promise.all([
    logIn(system.baseUrl, "cashier", system.cashier),
    logIn(system.baseUrl, "backoffice", system.owner),
  ]);
  station = `stations/${system.sandbox.stations[1]?.stationId}`;
  companionId = seeded("smart_pos_companion").deviceId;
  await cashier.good("POST", `${station}/lease/`);
});
afterEach(async () => {
  for (const program of running.splice(0)) {
    program.process.kill("SIGTERM");
    await program.ended;
  }
  const { intents } = await cashier.good<{ intents: { intent_id: number; cancel_offered: boolean }[] }>(
    "GET",
    `${station}/intents/`,
  );
  if (intents[0]?.cancel_offered === true)
    await cashier.good("POST", `${station}/intents/${intents[0].intent_id}/cancel/`);
});
afterAll(async () => {
  await system.stop();
  folder.remove();
});

function seeded(kind: string) {
  const device = system.sandbox.stations[1]?.devices.find((candidate) => candidate.kind === kind);
  if (device === undefined) throw new Error(`The sandbox has no ${kind}.`);
  return device;
}

function start(name: string, settings: { code?: string | null; baseUrl?: string } = {}): RunningProgram {
  const program = runProgram(process.execPath, [join(CLIENTS, `${name}.ts`)], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: programEnvironment({
      BASE_URL: settings.baseUrl ?? system.baseUrl,
      CREDENTIAL_FILE: join(folder.path, `${name}.json`),
      ENROLLMENT_CODE: settings.code ?? "",
    }),
  });
  running.push(program);
  return program;
}

async function lastWords(program: RunningProgram): Promise<string> {
  expect(await program.ended).toBe(1);
  return program.output().trim();
}

async function newCompanion(): Promise<RunningProgram> {
  await owner.good("POST", `devices/${companionId}/reset/`);
  const code = await newCode(owner, companionId);
  const program = start("virtual-companion", { code });
  await program.waitFor(/"attached"/);
  return program;
}

/** Another client with the companion's credential. */
function twinOfCompanion() {
  const text = readFileSync(join(folder.path, "virtual-companion.json"), "utf8");
  const { credential } = JSON.parse(text) as { credential: string };
  return apiClient(`${system.baseUrl}/api/payments/v1/devices/`, credential);
}

async function beginCollection(): Promise<string> {
  const lines = [{ name: "Soup of the day", quantity: 2, unit_amount: "6.25" }];
  const order = await cashier.good<{ order_id: number }>("POST", `${station}/orders/`, { body: { lines } });
  await vi.waitFor(async () => {
    const { routes } = await cashier.good<{ routes: unknown[] }>("GET", `${station}/routes/`);
    expect(routes).toContainEqual(expect.objectContaining({ route: "smart_pos", offered: true }));
  }, PATIENCE);
  const body = { order_id: order.order_id, route: "smart_pos" };
  const intent = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, { body });
  return `${station}/intents/${intent.intent_id}/`;
}

const reported = (intent: string) =>
  vi.waitFor(async () => {
    const read = await cashier.good<{ reports: unknown[]; report_count: number }>("GET", intent);
    expect(read.report_count).toBe(1);
    return read;
  }, PATIENCE);

describe("a virtual companion and a virtual display", { timeout: TEST_MS }, () => {
  it("a person who only creates an intent and attests it: a whole collection is made and shown", async () => {
    const companion = start("virtual-companion", { code: seeded("smart_pos_companion").enrollmentCode });
    const display = start("virtual-display", { code: seeded("customer_display").enrollmentCode });
    await Promise.all([companion.waitFor(/"attached"/), display.waitFor(/showing idle/)]);
    const [line = ""] = companion.output().split("\n");
    expect(JSON.parse(line), "the fields of the services' logs").toMatchObject({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      process: "virtual-companion",
      pid: companion.pid,
    });

    const intent = await beginCollection();
    await display.waitFor(/showing total: EUR 12\.50 for order \d+/);
    await companion.waitFor(/collecting EUR 12\.50/);
    expect(await reported(intent)).toMatchObject({
      status: "processing",
      device_id: companionId,
      reports: [{ outcome: "reported_success", provider_reference: expect.stringMatching(/^VIRT-\d{6}$/) }],
    });
    await cashier.good("POST", `${intent}attest/`);
    await display.waitFor(/showing paid: EUR 12\.50[^]*showing idle/);

    for (const program of [companion, display]) {
      program.process.kill("SIGTERM");
      expect(await program.ended).toBe(0);
    }
  });

  it("their credential: it is private, is in no log, and attaches them again without a code", async () => {
    const file = join(folder.path, "virtual-companion.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { credential } = JSON.parse(readFileSync(file, "utf8")) as { credential: string };
    const companion = start("virtual-companion");
    await companion.waitFor(/"attached"/);
    expect(companion.output()).not.toContain(credential);
    expect(system.log("gateway")).not.toContain(credential);
  });
});

// A companion whose name forbids polls is also ready; magic-behaviours.test.ts tests this.
describe("a virtual companion", { timeout: TEST_MS }, () => {
  it("it collects within one request per second, heartbeats included; killed and started again, it does not report twice", async () => {
    const first = await newCompanion();
    const intent = await beginCollection();
    await reported(intent);
    // The throttle fills up again by one request a second: at more than one a second the burst would be gone.
    await delay(BURST_MS);
    const twin = twinOfCompanion();
    let accepted = 0;
    while ((await twin.call("GET", "me/")).status === 200) accepted += 1;
    expect(accepted).toBeGreaterThanOrEqual(8);
    first.process.kill("SIGKILL");
    await first.ended;
    const second = start("virtual-companion");
    await second.waitFor(/"attached"/);
    await delay(POLLS_MS);
    expect(await cashier.good("GET", intent)).toMatchObject({ report_count: 1 });
  });

  it("killed while the guest pays and started again: it never collects again, and reports an unknown outcome", async () => {
    const first = await newCompanion();
    const intent = await beginCollection();
    await first.waitFor(/collecting EUR 12\.50/);
    first.process.kill("SIGKILL");
    await first.ended;
    const second = start("virtual-companion");
    await second.waitFor(/"attached"/);
    expect(await reported(intent)).toMatchObject({
      status: "processing",
      reports: [{ outcome: "reported_unknown", provider_reference: "" }],
    });
    expect(second.output()).not.toContain("collecting");
  });

  it("a damaged credential file: it enrolls again when it has a code, and reports the damage", async () => {
    const file = join(folder.path, "virtual-companion.json");
    writeFileSync(file, '{"device_id":7,"creden');
    expect(await lastWords(start("virtual-companion"))).toMatch(/damaged; delete it and enroll again\.$/);
    const program = await newCompanion();
    expect(program.output().match(/"the credential file is damaged"/g)).toHaveLength(1);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ device_id: companionId });
  });

  it("throttled, disconnected, suspended: it waits and continues; its credential is revoked: it ends", async () => {
    const program = await newCompanion();
    let heard = 0;
    /** The next output, after the lines that the test has already read. */
    const hear = (text: string) =>
      vi.waitFor(() => {
        const at = program.output().indexOf(text, heard);
        expect(at, program.output()).toBeGreaterThanOrEqual(0);
        heard = at + text.length;
      }, PATIENCE);
    const twin = twinOfCompanion();
    // Another client uses up the credential's budget until the companion is refused.
    const refused = hear('"reason":"throttled"');
    const enough = new AbortController();
    const requests = (async () => {
      while (!enough.signal.aborted) await twin.call("GET", "me/");
    })();
    await refused;
    enough.abort();
    await requests;
    await hear("accepts requests again");

    await system.processes.gateway.kill9();
    await hear('"reason":"unreachable"');
    await system.processes.gateway.restart();
    await hear("accepts requests again");
    await reported(await beginCollection());

    await owner.good("POST", `devices/${companionId}/suspend/`);
    await hear('"reason":"device_suspended"');
    await owner.good("POST", `devices/${companionId}/resume/`);
    await hear("accepts requests again");

    await owner.good("POST", `devices/${companionId}/reset/`);
    expect(await program.ended).toBe(1);
    const lines = program.output().split("\n");
    expect(lines.filter((line) => line !== "" && !line.startsWith("{"))).toEqual([
      "The device's credential or code is no longer valid: issue a new enrollment code in the back office and start again with ENROLLMENT_CODE set to it.",
    ]);
  });

  it("started while it is suspended: it is attached, and works once resumed", async () => {
    const first = await newCompanion();
    first.process.kill("SIGTERM");
    await first.ended;
    await owner.good("POST", `devices/${companionId}/suspend/`);
    const program = start("virtual-companion");
    await program.waitFor(/"attached"[^]*"reason":"device_suspended"/);
    await owner.good("POST", `devices/${companionId}/resume/`);
    await program.waitFor(/accepts requests again/);
    await reported(await beginCollection());
  });

  it.each([
    ["goes offline", "stopped", (program: RunningProgram) => program.process.kill("SIGTERM")],
    ["reports late", "left by its parent process", (program: RunningProgram) => program.process.disconnect()],
  ] as const)("while it '%s' it is %s: it ends at once and in good order", async (ending, _, end) => {
    await owner.good("PATCH", `devices/${companionId}/`, { body: { name: `Till ${ending}` } });
    const program = await newCompanion();
    await beginCollection();
    await program.waitFor(/collecting EUR/);
    await delay(clientLimits.collectMs + 1_000);
    const stoppedAtMs = performance.now();
    // Without its channel the child sends no further event.
    running.splice(running.indexOf(program), 1);
    const exited = once(program.process, "exit");
    end(program);
    expect(await exited).toEqual([0, null]);
    expect(performance.now() - stoppedAtMs, "long before the deadline").toBeLessThan(30_000);
    expect(program.output()).not.toContain("reported success");
    await owner.good("PATCH", `devices/${companionId}/`, { body: { name: "Till of the day" } });
  });

  it("the service has not started yet: it waits, and can be stopped meanwhile", async () => {
    // It starts with the credential of the previous companion.
    const program = start("virtual-companion", { baseUrl: "http://127.0.0.1:9" });
    await program.waitFor(/"reason":"unreachable".*waiting for the service/);
    expect(isRunning(program.pid)).toBe(true);
    program.process.kill("SIGINT");
    expect(await program.ended).toBe(0);
  });
});

describe("a virtual device that cannot start", { timeout: TEST_MS }, () => {
  it("no code, an unknown code, an unusable file or setting: it ends with one sentence", async () => {
    const fresh = temporaryFolder("fresh");
    const run = (environment: Record<string, string>): RunningProgram =>
      runProgram(process.execPath, [join(CLIENTS, "virtual-display.ts")], {
        env: programEnvironment({
          CREDENTIAL_FILE: join(fresh.path, "d.json"),
          BASE_URL: system.baseUrl,
          ...environment,
        }),
      });
    expect(await lastWords(run({}))).toMatch(/^The device is not enrolled yet: issue an enrollment code .*\.$/);
    expect(await lastWords(run({ ENROLLMENT_CODE: "AAAAA-AAAAA" }))).toMatch(
      /^The device's credential or code is no longer valid: .*\.$/,
    );
    const display = seeded("customer_display").deviceId;
    await owner.good("POST", `devices/${display}/reset/`);
    const code = await newCode(owner, display);
    // A program cannot write below /proc, and a folder is no file.
    const unwritable = "/proc/devices-of-a-test/display.json";
    expect(await lastWords(run({ ENROLLMENT_CODE: code, CREDENTIAL_FILE: unwritable }))).toBe(
      `The credential file ${unwritable} cannot be written.`,
    );
    expect(await lastWords(run({ CREDENTIAL_FILE: fresh.path }))).toBe(
      `The credential file ${fresh.path} cannot be read.`,
    );
    expect(await lastWords(run({ BASE_URL: "ftp://nowhere" }))).toBe(
      "The virtual-display cannot start: check the setting BASE_URL.",
    );
    fresh.remove();
  });
});
