/** The virtual companion and display as programs: real clients of a real system, also when something fails. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, type TestContext, vi } from "vitest";
import { KIT_LIMITS } from "../../clients/device-kit/limits.ts";
import { clientLimits } from "../../clients/limits.ts";
import { apiClient } from "../support/api-client.ts";
import { newCode } from "../support/devices.ts";
import { logIn, type Person } from "../support/people.ts";
import { isRunning, programEnvironment, type RunningProgram, runProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

/** A device may wait for half a minute after failures, and each test starts one or two processes on a busy machine. */
const TEST_MS = 400_000;
const WAIT = { timeout: 120_000, interval: 250 };
/** After this time, the throttle allows as many requests at once as at first. */
const BURST_MS = 10_000;
/** Two polls of the companion, and a second more. */
const POLLS_MS = 2 * KIT_LIMITS.pollEveryMs + 1_000;
const CLIENTS = join(import.meta.dirname, "..", "..", "clients");

let system: TestSystem;
let folder: TemporaryFolder;
let cashier: Person;
let owner: Person;

beforeAll(async () => {
  system = await sharedSystem({ claims: true });
  folder = temporaryFolder("clients");
  [cashier, owner] = await Promise.all([
    logIn(system.baseUrl, "cashier", system.cashier),
    logIn(system.baseUrl, "backoffice", system.owner),
  ]);
});
afterAll(async () => {
  await system.stop();
  folder.remove();
});

/** A station with its programs. Each test opens another place, so that the tests can run at the same time. */
interface Place {
  readonly station: string;
  readonly companionId: number;
  /** The folder of the credential files. */
  readonly path: string;
  readonly start: (name: string, settings?: { readonly code?: string; readonly baseUrl?: string }) => RunningProgram;
}

let places = 0;
/** Opens a station with a companion. Its programs end with the test. */
async function open(context: TestContext, companion = "Till of the day"): Promise<Place> {
  places += 1;
  const facts = { filial_id: system.sandbox.filialId, name: `Station ${places}`, currency: "EUR" };
  const { station_id } = await owner.good<{ station_id: number }>("POST", "stations/", { body: facts });
  const body = { station_id, name: companion, kind: "smart_pos_companion" };
  const { device_id: companionId } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
  return await placeAt(context, station_id, companionId);
}

async function placeAt({ onTestFinished }: TestContext, stationId: number, companionId: number): Promise<Place> {
  const station = `stations/${stationId}`;
  const path = mkdtempSync(join(folder.path, "place-"));
  await cashier.good("POST", `${station}/lease/`);
  const start: Place["start"] = (name, settings = {}) => {
    const program = runProgram(process.execPath, [join(CLIENTS, `${name}.ts`)], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: programEnvironment({
        BASE_URL: settings.baseUrl ?? system.baseUrl,
        CREDENTIAL_FILE: join(path, `${name}.json`),
        ENROLLMENT_CODE: settings.code ?? "",
      }),
    });
    onTestFinished(async () => {
      // `ended` never resolves for a program that has ended without its channel.
      if (!isRunning(program.pid)) return;
      program.process.kill("SIGTERM");
      await program.ended;
    });
    return program;
  };
  return { station, companionId, path, start };
}

async function lastWords(program: RunningProgram): Promise<string> {
  expect(await program.ended).toBe(1);
  return program.output().trim();
}

const fileOf = ({ path }: Place): string => join(path, "virtual-companion.json");

async function newCompanion(place: Place): Promise<RunningProgram> {
  await owner.good("POST", `devices/${place.companionId}/reset/`);
  const code = await newCode(owner, place.companionId);
  const program = place.start("virtual-companion", { code });
  await program.waitFor(/"attached"/);
  return program;
}

/** Another client with the credential of the companion. */
function twinOfCompanion(place: Place) {
  const { credential } = JSON.parse(readFileSync(fileOf(place), "utf8")) as { credential: string };
  return apiClient(`${system.baseUrl}/api/payments/v1/devices/`, credential);
}

async function beginCollection({ station }: Place): Promise<string> {
  const lines = [{ name: "Soup of the day", quantity: 2, unit_amount: "6.25" }];
  const order = await cashier.good<{ order_id: number }>("POST", `${station}/orders/`, { body: { lines } });
  await vi.waitFor(async () => {
    const { routes } = await cashier.good<{ routes: unknown[] }>("GET", `${station}/routes/`);
    expect(routes).toContainEqual(expect.objectContaining({ route: "smart_pos", offered: true }));
  }, WAIT);
  const body = { order_id: order.order_id, route: "smart_pos" };
  const intent = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, { body });
  return `${station}/intents/${intent.intent_id}/`;
}

/** Waits for texts in the program's output, each one after the text before it. */
function outputOf(program: RunningProgram): (text: string) => Promise<void> {
  let foundThrough = 0;
  return (text) =>
    vi.waitFor(() => {
      const at = program.output().indexOf(text, foundThrough);
      expect(at, program.output()).toBeGreaterThanOrEqual(0);
      foundThrough = at + text.length;
    }, WAIT);
}

const reported = (intent: string) =>
  vi.waitFor(async () => {
    const read = await cashier.good<{ reports: unknown[]; report_count: number }>("GET", intent);
    expect(read.report_count).toBe(1);
    return read;
  }, WAIT);

// A companion whose name forbids polls is also ready; magic-behaviours.test.ts tests this.
describe.concurrent("a virtual companion", { timeout: TEST_MS }, () => {
  it("with a display: a whole collection; its credential file is private, and attaches it again", async (context) => {
    const [, seeded] = system.sandbox.stations;
    const of = (kind: string) => seeded?.devices.find((device) => device.kind === kind);
    const companionId = of("smart_pos_companion")?.deviceId ?? 0;
    const place = await placeAt(context, seeded?.stationId ?? 0, companionId);
    const companion = place.start("virtual-companion", { code: of("smart_pos_companion")?.enrollmentCode ?? "" });
    const display = place.start("virtual-display", { code: of("customer_display")?.enrollmentCode ?? "" });
    await Promise.all([companion.waitFor(/"attached"/), display.waitFor(/showing idle/)]);
    const [line = ""] = companion.output().split("\n");
    expect(JSON.parse(line), "the fields of the services' logs").toMatchObject({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      process: "virtual-companion",
      pid: companion.pid,
    });

    const intent = await beginCollection(place);
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

    const file = fileOf(place);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { credential } = JSON.parse(readFileSync(file, "utf8")) as { credential: string };
    const again = place.start("virtual-companion");
    await again.waitFor(/"attached"/);
    for (const program of [companion, again]) expect(program.output()).not.toContain(credential);
    expect(system.log("gateway")).not.toContain(credential);
  });

  it("one request per second at most, with heartbeats; killed and started again: does not report twice", async (context) => {
    const place = await open(context);
    const first = await newCompanion(place);
    const intent = await beginCollection(place);
    await reported(intent);
    // The throttle fills up again by one request a second: at more than one a second the burst would be gone.
    await delay(BURST_MS);
    const twin = twinOfCompanion(place);
    let accepted = 0;
    while ((await twin.call("GET", "me/")).status === 200) accepted += 1;
    expect(accepted).toBeGreaterThanOrEqual(8);
    first.process.kill("SIGKILL");
    await first.ended;
    const second = place.start("virtual-companion");
    await second.waitFor(/"attached"/);
    await delay(POLLS_MS);
    expect(await cashier.good("GET", intent)).toMatchObject({ report_count: 1 });
  });

  it("killed while the guest pays, and started again: does not collect again, and reports unknown", async (context) => {
    const place = await open(context);
    const first = await newCompanion(place);
    const intent = await beginCollection(place);
    await first.waitFor(/collecting EUR 12\.50/);
    first.process.kill("SIGKILL");
    await first.ended;
    const second = place.start("virtual-companion");
    await second.waitFor(/"attached"/);
    expect(await reported(intent)).toMatchObject({
      status: "processing",
      reports: [{ outcome: "reported_unknown", provider_reference: "" }],
    });
    expect(second.output()).not.toContain("collecting");
  });

  it("a damaged credential file: reports the damage, and enrolls again when it has a code", async (context) => {
    const place = await open(context);
    const file = fileOf(place);
    writeFileSync(file, '{"device_id":7,"creden');
    expect(await lastWords(place.start("virtual-companion"))).toMatch(/damaged; delete it and enroll again\.$/);
    const program = await newCompanion(place);
    expect(program.output().match(/"the credential file is damaged"/g)).toHaveLength(1);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ device_id: place.companionId });
  });

  it("throttled or suspended: waits and continues; its credential is revoked: ends", async (context) => {
    const place = await open(context);
    const program = await newCompanion(place);
    const printed = outputOf(program);
    const twin = twinOfCompanion(place);
    // Another client uses up the budget of the credential, until the companion is refused.
    const refused = printed('"reason":"throttled"');
    const enough = new AbortController();
    const requests = (async () => {
      while (!enough.signal.aborted) await twin.call("GET", "me/");
    })();
    await refused;
    enough.abort();
    await requests;
    await printed("accepts requests again");

    await owner.good("POST", `devices/${place.companionId}/suspend/`);
    await printed('"reason":"device_suspended"');
    await owner.good("POST", `devices/${place.companionId}/resume/`);
    await printed("accepts requests again");

    await owner.good("POST", `devices/${place.companionId}/reset/`);
    expect(await program.ended).toBe(1);
    const lines = program.output().split("\n");
    expect(lines.filter((line) => line !== "" && !line.startsWith("{"))).toEqual([
      "The device's credential or code is no longer valid: issue a new enrollment code in the back office and start again with ENROLLMENT_CODE set to it.",
    ]);
  });

  it("started while it is suspended: attaches, and works after the resumption", async (context) => {
    const place = await open(context);
    const first = await newCompanion(place);
    first.process.kill("SIGTERM");
    await first.ended;
    await owner.good("POST", `devices/${place.companionId}/suspend/`);
    const program = place.start("virtual-companion");
    await program.waitFor(/"attached"[^]*"reason":"device_suspended"/);
    await owner.good("POST", `devices/${place.companionId}/resume/`);
    await program.waitFor(/accepts requests again/);
    await reported(await beginCollection(place));
  });

  it.for([
    ["goes offline", "stopped", (program: RunningProgram) => program.process.kill("SIGTERM")],
    ["reports late", "left by its parent process", (program: RunningProgram) => program.process.disconnect()],
  ] as const)("a companion that '%s', %s: ends at once, with exit code 0", async ([ending, , end], context) => {
    const place = await open(context, `Till ${ending}`);
    const program = await newCompanion(place);
    await beginCollection(place);
    await program.waitFor(/collecting EUR/);
    await delay(clientLimits.collectMs + 1_000);
    const stoppedAtMs = performance.now();
    const exited = once(program.process, "exit");
    end(program);
    expect(await exited).toEqual([0, null]);
    expect(performance.now() - stoppedAtMs, "long before the deadline").toBeLessThan(30_000);
    expect(program.output()).not.toContain("reported success");
  });
});

// This test does not run beside the others, because it kills the gateway.
describe("a virtual companion without the service", { timeout: TEST_MS }, () => {
  it("loses the service: waits and continues; starts without the service: waits, and can be stopped", async (context) => {
    const place = await open(context);
    const program = await newCompanion(place);
    const printed = outputOf(program);
    await system.processes.gateway.kill9();
    await printed('"reason":"unreachable"');
    await system.processes.gateway.restart();
    await printed("accepts requests again");
    await reported(await beginCollection(place));
    program.process.kill("SIGTERM");
    await program.ended;

    const early = place.start("virtual-companion", { baseUrl: "http://127.0.0.1:9" });
    await early.waitFor(/"reason":"unreachable".*waiting for the service/);
    expect(isRunning(early.pid)).toBe(true);
    early.process.kill("SIGINT");
    expect(await early.ended).toBe(0);
  });
});

describe("a virtual device that cannot start", { timeout: TEST_MS }, () => {
  it("no code, an unknown code, an unusable file or setting: ends with one sentence", async () => {
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
    const devices = system.sandbox.stations[1]?.devices ?? [];
    const display = devices.find(({ kind }) => kind === "customer_display")?.deviceId ?? 0;
    await owner.good("POST", `devices/${display}/reset/`);
    const code = await newCode(owner, display);
    // A program cannot write below /proc, and a folder is not a file.
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
