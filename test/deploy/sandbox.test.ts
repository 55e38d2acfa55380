/**
 * `npm start` from a new user's first minute on: the demos that it prints work, every killed part is started again
 * automatically, and a second start, now with TLS at the gateway, keeps everything. The certificate is one that no
 * authority has signed and that names another host. A third start has the database that was backed up after the first.
 */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { MAGIC_BEHAVIOURS } from "../../clients/magic-behaviours.ts";
import { deployLimits } from "../../deploy/limits.ts";
import type { SandboxFacts } from "../../deploy/sandbox/facts.ts";
import { MAGIC_AMOUNTS } from "../../services/sandbox-provider/magic-amounts.ts";
import { selfSigned } from "../support/certificates.ts";
import { cashierAt, collectAt, sandboxFacts } from "../support/demo-station.ts";
import { freePort } from "../support/free-port.ts";
import { send } from "../support/http.ts";
import { logIn, newOrder } from "../support/people.ts";
import { isRunning, programEnvironment, type RunningProgram, runProgram } from "../support/running-program.ts";
import { IS_UP, startInstallation } from "../support/start-installation.ts";
import { serverFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const DEMO = join(CHECKOUT, "clients", "demo.ts");
/** The parts by the name in their lines, and by a word of their command line. */
const PARTS = {
  "virtual-companion": "clients/virtual-companion.ts",
  "virtual-display": "clients/virtual-display.ts",
  gateway: "gateway/main.ts",
  stations: "services/main.ts stations",
  services: "services/main.ts registry",
  "nats-server": "nats-server --config",
  PostgreSQL: "bin/postgres -D",
} as const;
type Part = keyof typeof PARTS;
const PART_NAMES = Object.keys(PARTS) as Part[];
const LINES_MS = 120_000;
const TEST_MS = 600_000;
/** By then all processes have ended that got a stop signal, or that a killed supervisor has left to its watchdog. */
const GONE_MS = deployLimits.orphanGraceMs + 5_000;
const folder = serverFolder("sandbox");
const started: RunningProgram[] = [];

afterAll(() => folder.remove());

/** A program that a failed test leaves behind would prevent the next start on the data folder. */
async function endAll(): Promise<void> {
  for (const program of started.splice(0)) {
    if (isRunning(program.pid)) program.process.kill("SIGTERM");
    await program.ended;
  }
}

async function start(more: Readonly<Record<string, string>> = {}, ...args: readonly string[]): Promise<RunningProgram> {
  const settings = { PORT: String(await freePort()), DATA_DIR: folder.path, ...more };
  const program = startInstallation(settings, ...args);
  started.push(program);
  await program.waitFor(IS_UP);
  return program;
}

const run = promisify(execFile);

/** Runs a program of `clients/` that knows only the data folder. Rejects unless its exit code is 0. */
const client = async (name: string, ...args: readonly string[]): Promise<string> => {
  const env = programEnvironment({ DATA_DIR: folder.path });
  const program = join(CHECKOUT, "clients", `${name}.ts`);
  return (await run(process.execPath, [program, ...args], { env, timeout: LINES_MS })).stdout;
};

/** A demo as a new user types it. */
const demo = (...args: readonly string[]): Promise<string> => client("demo", ...args);

/** The same demo as lines, pasted into a shell. */
async function paste(...args: readonly string[]): Promise<string> {
  const lines = await demo(...args, "--curl");
  const { stdout, stderr } = await run("bash", ["-c", lines], { timeout: LINES_MS });
  expect(stderr).toBe("");
  return stdout;
}

const facts = (): SandboxFacts => sandboxFacts(folder.path);

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Every process that names the data folder on its command line or is a child of the supervisor. */
async function processesOf(program: RunningProgram): Promise<readonly Process[]> {
  const { stdout } = await run("ps", ["-A", "-o", "pid=,ppid=,args="]);
  const rows = stdout.split("\n").map((row) => {
    const [, pid, parent, command = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row) ?? [];
    return { pid: Number(pid), parent: Number(parent), command };
  });
  return rows.filter(({ parent, command }) => parent === program.pid || command.includes(folder.path));
}

async function pidOf(program: RunningProgram, part: Part): Promise<number> {
  const processes = await processesOf(program);
  const found = processes.filter(({ parent, command }) => parent === program.pid && command.includes(PARTS[part]));
  if (found.length !== 1) throw new Error(`There is not one ${part}: ${found.map(({ pid }) => pid).join()}`);
  return found[0]?.pid as number;
}

/** Kills a part and waits for the line that says that it runs again. */
async function killAndAwait(program: RunningProgram, part: Part): Promise<void> {
  const before = program.output().length;
  process.kill(await pidOf(program, part), "SIGKILL");
  await vi.waitFor(() => expect(program.output().slice(before)).toMatch(new RegExp(`^${part} is up again`, "m")), {
    timeout: 120_000,
    interval: 50,
  });
}

function expectWholeCollection(output: string): void {
  expect(output).toContain('"state":"total"');
  expect(output).toContain('"route":"smart_pos","offered":true');
  expect(output).toContain('"status":"presented"');
  expect(output).toContain('"outcome":"reported_success"');
  expect(output).toContain('"status":"succeeded"');
  expect(output).toContain('"state":"paid"');
  const [, opened] = /"order_display_number":(\d+),"station_id"/.exec(output) ?? [];
  const [, inTimeline] = /EUR 12\.50 for order (\d+) was collected by smart POS/.exec(output) ?? [];
  expect(opened, "the number that the display and the timeline show").toMatch(/^\d+$/);
  expect(inTimeline).toBe(opened);
}

/** Expects that the facts have the tables of amounts and names that force an outcome. */
function expectMagicInputs({ magicAmounts, magicBehaviours }: SandboxFacts): void {
  expect(magicAmounts).toEqual(MAGIC_AMOUNTS.map(({ scenario: _scenario, ...written }) => written));
  expect(magicBehaviours).toEqual(
    MAGIC_BEHAVIOURS.map(({ behaviour: _behaviour, report: _report, ...written }) => written),
  );
}

/** Begins a QR collection that waits for the guest page. */
async function showQr({ baseUrl, cashier: person }: SandboxFacts, stationId: number) {
  const cashier = await logIn(baseUrl, "cashier", person);
  const station = `stations/${stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  const order_id = await newOrder(cashier, station, "12.03");
  const qr = { body: { order_id, route: "dynamic_qr" } };
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, qr);
  const path = `${station}/intents/${intent_id}/`;
  const intent = await vi.waitFor(
    async () => {
      const read = await cashier.good<{ status: string; provider: { qr_payload: string } }>("GET", path);
      expect(read.status).toBe("presented");
      return read;
    },
    { timeout: 60_000, interval: 100 },
  );
  return { path, qrPayload: intent.provider.qr_payload };
}

/** Expects that the display shows the QR, the guest approves on its page, and the display shows that it is paid. */
function expectWholeQr(output: string): void {
  expect(output).toContain('"state":"qr"');
  expect(output).toContain("12.03 EUR");
  expect(output).toMatch(/"attestation":\{"by":"provider"/);
  expect(output).toContain('"state":"paid"');
}

/** Expects one attributed issue with its timeline, and one closed issue whose order is collected again with a confirmation. */
function expectIssuesResolved(output: string): void {
  for (const kind of ["reference_mismatch", "amount_over"]) expect(output).toContain(`"kind":"${kind}"`);
  for (const status of ["attributed", "closed", "paid"]) expect(output).toContain(`"status":"${status}"`);
  expect(output).toContain("Sandbox Operator attributed the provider's EUR 12.09");
  expect(output).toContain('"code":"money_may_have_moved"');
  expect(output.trimEnd()).toMatch(/"status":"succeeded".*$/);
}

function expectWholeTask(output: string): void {
  expect(output).toContain('"manifest":[{"name":"Soup of the day","quantity":2}],"destination":{"name":"Table 12"');
  for (const status of ["offered", "accepted", "completed"]) expect(output).toContain(`"status":"${status}"`);
}

let before: SandboxFacts;
/** A QR that is shown when the first start ends. */
let shown: { readonly path: string; readonly qrPayload: string };
const demoStationOf = ({ demoStation }: SandboxFacts): string => `stations/${demoStation.stationId}`;
/** An order that is unpaid when the first start ends and the database is backed up. */
let unpaid: number;
/** The last order of the second start, whose number the backup does not know. */
let afterBackup: number;
const [DATA, BACKUP] = [join(folder.path, "postgres"), join(folder.path, "postgres.backup")];
const COMPANION_FILE = join(folder.path, "virtual-companion.json");

describe("the first start", { timeout: TEST_MS }, () => {
  let program: RunningProgram;
  beforeAll(async () => {
    program = await start();
    before = facts();
  }, TEST_MS);
  afterAll(endAll);

  test("each demo, run and pasted: it ends well", async () => {
    const screen = program.output().split("Device payments is running at")[1] ?? "";
    expect(screen.split("\n").length, "fits on one screen").toBeLessThan(24);
    expect(screen).toMatch(/ {2}enrollment code \S+$/m);
    expect(statSync(join(folder.path, "sandbox.json")).mode & 0o777).toBe(0o600);
    expect(before.station.devices.every((device) => device.enrollmentCode !== null)).toBe(true);
    expectMagicInputs(before);
    expectWholeCollection(await demo());
    // The demo uses other devices, so the printed codes are still valid.
    for (const { deviceId, enrollmentCode } of before.station.devices) {
      const json = { code: enrollmentCode };
      const enrolled = await send(before.baseUrl, "POST", "/api/payments/v1/devices/enroll/", { json });
      expect(enrolled.body).toMatchObject({ device: { device_id: deviceId } });
    }
    expectIssuesResolved(await demo("issue"));
    expectWholeTask(await demo("robot"));
    expectIssuesResolved(await paste("issue"));
    shown = await showQr(before, before.station.stationId);
    const station = demoStationOf(before);
    unpaid = await newOrder(await cashierAt(before, station), station, "3.10");
  });

  test("every part is killed: each is started again with one line, and a payment is collected afterwards", async () => {
    const pids = async (): Promise<number[]> => await Promise.all(PART_NAMES.map((part) => pidOf(program, part)));
    const killed = await pids();
    for (const part of PART_NAMES) await killAndAwait(program, part);
    for (const pid of await pids()) expect(killed).not.toContain(pid);
    for (const part of PART_NAMES) {
      const line = `${part} was ended by SIGKILL; it is started again in 0.2 s. Its log is ${folder.path}/logs/`;
      expect(program.output().split(line), part).toHaveLength(2);
    }
    await collectAt(before);
  });

  test("the key for enrollment codes: it is private, and only the process that hashes them gets it", async () => {
    const file = join(folder.path, "secrets.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const key = (JSON.parse(readFileSync(file, "utf8")) as Record<string, string>)["enrollment_code_key"];
    expect(key).toMatch(/^[\w-]{32}$/);
    const holders: Part[] = [];
    for (const part of PART_NAMES) {
      const environment = readFileSync(`/proc/${await pidOf(program, part)}/environ`, "utf8");
      if (environment.includes(key ?? "")) holders.push(part);
    }
    expect(holders).toEqual(["services"]);
  });
});

describe("a second start, with TLS, after the credential file of a virtual device was damaged", {
  timeout: TEST_MS,
}, () => {
  let program: RunningProgram;
  let after: SandboxFacts;
  const [certFile, keyFile] = [join(folder.path, "cert.pem"), join(folder.path, "key.pem")];
  const dispatcher = getGlobalDispatcher();
  let agent: Agent;
  beforeAll(async () => {
    await run("cp", ["-a", DATA, BACKUP]);
    writeFileSync(COMPANION_FILE, readFileSync(COMPANION_FILE, "utf8").slice(0, 20));
    const { cert, key } = selfSigned({ names: ["pay.example"] });
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    // The test's own requests trust this certificate, whatever host it names.
    agent = new Agent({ connect: { ca: cert, checkServerIdentity: () => undefined } });
    setGlobalDispatcher(agent);
    program = await start({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });
    after = facts();
  }, TEST_MS);
  afterAll(async () => {
    setGlobalDispatcher(dispatcher);
    await agent.close();
    await endAll();
  });

  test("people, devices and what the demos did: they are kept", async () => {
    expect(after.cashier).toEqual(before.cashier);
    expect(after.robotics).toEqual(before.robotics);
    expect(after.links.start, "each start makes a new link").not.toBe(before.links.start);
    expect(after.station.stationId).toBe(before.station.stationId);
    // A guest who has the QR on the phone can still pay with it.
    const guestPage = await fetch(shown.qrPayload);
    expect([guestPage.status, await guestPage.text()]).toEqual([200, expect.stringContaining("12.03 EUR")]);
    await (await logIn(after.baseUrl, "cashier", after.cashier)).good("POST", `${shown.path}cancel/`);
    // They enrolled before the restart.
    expect(after.station.devices.map((device) => device.enrollmentCode)).toEqual([null, null]);
    expectWholeTask(await paste("robot"));
    expectWholeCollection(await paste());
  });

  test("TLS: every printed address of the gateway is https, and the virtual devices attach", () => {
    const output = program.output();
    expect(output).toContain("virtual-companion: up.");
    expect(output).toContain("virtual-display: up.");
    const { baseUrl, links } = after;
    expect(baseUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(Object.values(links).filter((link) => link.startsWith(baseUrl))).toHaveLength(5);
    expect(output).toContain(`Device payments is running at ${baseUrl}`);
    expect(output).not.toContain(baseUrl.replace("https:", "http:"));
  });

  test("the demo by QR with TLS: it ends well, run and as curl lines, and the callback comes over TLS too", async () => {
    // Each demo ends what an earlier one may have left, here a QR that waits for its guest.
    await showQr(after, after.demoStation.stationId);
    expectWholeQr(await demo("qr"));
    expectWholeQr(await paste("qr"));
  });

  test("a server with another certificate: the curl lines send nothing to it", async () => {
    const other = selfSigned({ names: ["127.0.0.1"] });
    let requests = 0;
    const server = createServer(other, (_request, response) => {
      requests += 1;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const lines = (await demo("robot", "--curl")).replace(/^BASE=.*$/m, `BASE=${base}`);
    expect(lines).toContain("curl ");
    const { stdout, stderr } = await run("bash", ["-c", lines], { timeout: LINES_MS });
    expect(stdout + stderr).toMatch(/curl: \(90\)/);
    expect(requests).toBe(0);
    await new Promise((resolve) => server.close(resolve));
  });

  test("the commands with TLS: they find the service and trust its certificate", async () => {
    expect(await client("organization", "list")).toMatch(/^\d+\tSandbox/m);
    expect(await client("cli", "webhooks", "trigger", "serving_task.offered")).not.toBe("");
  });

  test("the device with the damaged file: it attaches again", () => {
    const deviceId = after.demoStation.devices.find(({ kind }) => kind === "smart_pos_companion")?.deviceId;
    expect(program.output()).toContain("virtual-companion: up.");
    expect(JSON.parse(readFileSync(COMPANION_FILE, "utf8"))).toMatchObject({ device_id: deviceId });
  });

  test("a collection at the demo station needs only an intent: the virtual devices do the rest", async () => {
    const { baseUrl, cashier: person, demoStation, links } = after;
    // The first line of the screen is a link that signs the new user in.
    const [, link = ""] = /\n\nOpen (\S+)\n.+\n\nDevice payments is running at/.exec(program.output()) ?? [];
    expect(link).toBe(links.start);
    const [page, token] = link.split("#");
    expect(page).toBe(`${baseUrl}/start/`);
    const opened = await send(baseUrl, "POST", "/api/start/v1/session/", { json: { token } });
    expect(opened.body).toMatchObject({ station_id: demoStation.stationId });
    const cashier = await logIn(baseUrl, "cashier", person);
    const { routes } = await cashier.good<{ routes: unknown[] }>("GET", `stations/${demoStation.stationId}/routes/`);
    expect(routes, "offered at once").toContainEqual(expect.objectContaining({ route: "smart_pos", offered: true }));
    afterBackup = await collectAt(after);
  });

  test("its supervisor is killed: no process outlives it", async () => {
    program.process.kill("SIGKILL");
    await program.ended;
    await vi.waitFor(async () => expect(await processesOf(program)).toEqual([]), { timeout: GONE_MS, interval: 250 });
  });
});

describe("a start with a database restored from a backup, while devices and guests have later numbers", {
  timeout: TEST_MS,
}, () => {
  afterAll(endAll);

  test("--database-restored: no number is given again, and an order that was open asks before it is collected", async () => {
    rmSync(DATA, { recursive: true });
    renameSync(BACKUP, DATA);
    // The companion enrolled after the backup, so it enrolls again.
    rmSync(COMPANION_FILE);
    const program = await start({}, "--database-restored");
    expect(await collectAt(facts())).toBeGreaterThan(afterBackup + 900_000);
    const station = demoStationOf(facts());
    const cashier = await cashierAt(facts(), station);
    const body = { order_id: unpaid, route: "cash" };
    const refused = await cashier.call<{ code: string }>("POST", `${station}/intents/`, { body });
    expect([refused.status, refused.body.code]).toEqual([409, "money_may_have_moved"]);
    program.process.kill("SIGTERM");
    expect(await program.ended).toBe(0);
  });
});

test("a demo without a sandbox, an unknown demo and a demo without a service: one sentence and an exit code each", async () => {
  const ended = async (args: readonly string[], dataDir: string, as = {}) => {
    const program = runProgram(process.execPath, [DEMO, ...args], {
      env: programEnvironment({ DATA_DIR: dataDir }),
      ...as,
    });
    return { code: await program.ended, output: program.output() };
  };
  const elsewhere = join(folder.path, "elsewhere");
  expect(await ended([], elsewhere)).toEqual({
    code: 1,
    output: `No sandbox was found (there is no ${join(elsewhere, "sandbox.json")}); start it with \`npm start\`, as the same user.\n`,
  });
  mkdirSync(elsewhere, { mode: 0 });
  // Root may read everything, so as root the test uses another account.
  const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534, cwd: "/" } : {};
  expect((await ended([], elsewhere, account)).output).toContain(
    `(${join(elsewhere, "sandbox.json")} cannot be read (EACCES))`,
  );
  expect(await ended(["--curls"], folder.path)).toEqual({
    code: 2,
    output: "Unknown option '--curls'; --help shows what there is.\n",
  });
  expect(await ended(["till"], folder.path)).toEqual({
    code: 2,
    output: 'There is no demo "till"; the demos are collection, qr, issue, robot; see --help.\n',
  });
  const stopped = await ended([], folder.path);
  expect(stopped.code).toBe(1);
  expect(stopped.output).toMatch(/The service at \S+ does not answer; start it with `npm start`\.\n$/);
});
