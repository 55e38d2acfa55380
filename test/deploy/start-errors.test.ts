/** A start that cannot succeed ends with one sentence and exit code 1. */
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createContext } from "../../deploy/application-context.ts";
import { freePort, keptPort, listenError } from "../../deploy/ports.ts";
import { portStep } from "../../deploy/server-steps.ts";
import { readSettings } from "../../deploy/settings.ts";
import { connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { claimBus } from "../../services/bus/installation.ts";
import { newInstallation, type TestInstallation } from "../support/installations.ts";
import { QUIET } from "../support/quiet-log.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { serverFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const START = join(CHECKOUT, "deploy", "start.ts");
const SERVERS = join(import.meta.dirname, "programs", "servers.ts");
const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

function folder(): string {
  const made = serverFolder("start");
  cleanUps.push(made.remove);
  return made.path;
}

function run(
  program: string,
  environment: NodeJS.ProcessEnv,
  account: { uid?: number; gid?: number } = {},
): RunningProgram {
  const env = { ...process.env, NATS_URL: "", DATABASE_URL: "", PORT: "0", ...environment };
  return runProgram(process.execPath, [program], { env, cwd: "/", ...account });
}

async function listener(wanted = 0): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(wanted, "127.0.0.1", resolve);
  });
  cleanUps.push(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Runs a start that must end with exit code 1. Returns what it prints. */
async function refusal(environment: NodeJS.ProcessEnv, account?: { uid?: number; gid?: number }): Promise<string> {
  const program = run(START, environment, account);
  expect(await program.ended).toBe(1);
  return program.output();
}

describe("npm start: one sentence and exit code 1", () => {
  test.each([
    ["the port", "PORT"],
    ["a metrics port", "METRICS_PORT"],
  ])("another program has %s: nothing is started", async (_what, variable) => {
    const port = await listener();
    const dataDir = folder();
    expect(await refusal({ [variable]: String(port), DATA_DIR: dataDir })).toBe(
      `Port ${port} on 127.0.0.1 is taken by another program; set ${variable} to a free one.\n`,
    );
    expect(existsSync(join(dataDir, "nats"))).toBe(false);
  });

  test("the address is not one of this machine: the sentence names HOST", async () => {
    expect(await refusal({ HOST: "192.0.2.1", DATA_DIR: folder() })).toBe(
      "It is not possible to listen on 192.0.2.1: this machine does not have that address (EADDRNOTAVAIL); set HOST to an address of this machine.\n",
    );
  });

  test("another start uses the data folder: this start is refused until the other one has ended, also by a kill", async () => {
    const dataDir = folder();
    const first = run(SERVERS, { DATA_DIR: dataDir });
    await first.waitFor(/database=/);
    expect(await refusal({ DATA_DIR: dataDir })).toBe(
      `The data folder ${dataDir} is in use by another start (process ${first.pid}); stop that one first, or choose another folder with DATA_DIR.\n`,
    );
    first.process.kill("SIGKILL");
    await first.ended;
    const third = run(SERVERS, { DATA_DIR: dataDir });
    await third.waitFor(/database=/);
    third.process.kill("SIGTERM");
    expect(await third.ended).toBe(0);
  });

  test("the data folder cannot be made: the sentence has the reason", async () => {
    expect(await refusal({ DATA_DIR: "/proc/data" })).toBe(
      "The data folder /proc/data (DATA_DIR) cannot be used: there is no such file or folder (ENOENT); correct the path.\n",
    );
  });

  test("this user may not write the data folder: the sentence has the reason", async () => {
    const dataDir = join(folder(), "data");
    mkdirSync(dataDir);
    chmodSync(dataDir, 0o555);
    // Root may write everywhere, so as root the test uses another account.
    const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    chmodSync(join(dataDir, ".."), 0o755);
    expect(await refusal({ DATA_DIR: dataDir }, account)).toMatch(
      /^The data folder \S+ \(DATA_DIR\) cannot be used: this user has no permission \(EACCES\); give .*\.\n$/,
    );
  });

  test.each([
    // The start reads this setting. `settings.test.ts` has the others.
    ["DATABASE_URL", "hello", "it must be an address like postgres://user:password@host:5432/database"],
    // Only a part reads this setting.
    ["STATION_LEASE_MS", "99999999", "it must be a whole number from 1000 to 3600000"],
  ])("%s is %s: the sentence names what is allowed, and nothing is started", async (name, value, rule) => {
    const dataDir = join(folder(), "data");
    expect(await refusal({ DATA_DIR: dataDir, [name]: value })).toBe(`The setting ${name} is not usable: ${rule}.\n`);
    expect(existsSync(dataDir)).toBe(false);
  });

  test("an unusable address with a password: the sentence does not contain the address", async () => {
    const sentence = await refusal({ DATABASE_URL: "mysql://user:hidden@host/db" });
    expect(sentence).toMatch(/^The setting DATABASE_URL is not usable: .*\.\n$/);
    expect(sentence).not.toContain("hidden");
  });
});

const OWNER = "3f0f7f0e-0000-4000-8000-000000000001";

describe("a bus of another installation", () => {
  let nats: TestServer;
  let second: TestInstallation;
  beforeAll(async () => {
    [nats, second] = await Promise.all([startNats(), newInstallation()]);
    const bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
    await claimBus({ bus, installation: { id: OWNER, database: "elsewhere" } }, { replicas: 1, logs: 1 });
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    await bus.close();
  });
  afterAll(async () => {
    await Promise.all([nats.stop(), second.drop()]);
  });

  test.each([
    ["npm start", "deploy/start.ts", []],
    ["a process of services", "services/main.ts", ["relay"]],
  ])("%s: one sentence names both installations, exit code 1", async (_what, script, args) => {
    const own = { NATS_URL: nats.url, DATABASE_URL: second.url, PORT: "0", DATA_DIR: folder(), LOG_LEVEL: "silent" };
    const program = runProgram(process.execPath, [join(CHECKOUT, script), ...args], {
      env: { ...process.env, ...own },
    });
    expect(await program.ended).toBe(1);
    expect(program.output()).toContain(
      `Two installations meet: the NATS at 127.0.0.1:${nats.port} belongs to ${OWNER}, and the database at ${second.name} belongs to ${second.id};`,
    );
    expect(program.output().trim().split("\n").at(-1)).toMatch(/^Two installations meet: .* gone for good\.$/);
  });
});

describe("a port that the next start uses again", () => {
  test("a second start on one data folder: it gets the same port, and each name has a different one", async () => {
    const dataDir = folder();
    const first = await keptPort(dataDir, "sandboxProvider");
    const other = await keptPort(dataDir, "other");
    expect(other).not.toBe(first);
    expect(await keptPort(dataDir, "sandboxProvider")).toBe(first);
    expect(await keptPort(dataDir, "other")).toBe(other);
  });

  test("another program listens on it: another port is chosen and stored", async () => {
    const dataDir = folder();
    const first = await keptPort(dataDir, "taken");
    await listener(first);
    const second = await keptPort(dataDir, "taken");
    expect(second).not.toBe(first);
    expect(await keptPort(dataDir, "taken")).toBe(second);
  });

  test("a damaged file: another port is chosen and stored", async () => {
    const dataDir = folder();
    writeFileSync(join(dataDir, "ports.json"), "{");
    const port = await keptPort(dataDir, "sandboxProvider");
    expect(await keptPort(dataDir, "sandboxProvider")).toBe(port);
  });
});

describe("the ports that a start chooses", () => {
  async function chosenAddresses(dataDir: string, settings: NodeJS.ProcessEnv) {
    const environment = { PORT: "0", DATA_DIR: dataDir, ...settings };
    const context = createContext({
      settings: readSettings(environment),
      checkout: CHECKOUT,
      environment,
      print: () => undefined,
    });
    await portStep(context).start({ stopping: new AbortController().signal, fail: () => undefined });
    return context.addresses;
  }

  async function sandboxAddress(dataDir: string, settings: NodeJS.ProcessEnv): Promise<string> {
    return (await chosenAddresses(dataDir, settings)).get("sandboxProvider");
  }

  test("PORT=0: the gateway's address has a free port", async () => {
    const { hostname, port } = new URL((await chosenAddresses(folder(), {})).get("gateway"));
    expect(await listenError(hostname, Number(port))).toBeUndefined();
  });

  test("SANDBOX_PROVIDER_PORT: the sandbox provider listens on it", async () => {
    const port = String(await freePort());
    expect(await sandboxAddress(folder(), { SANDBOX_PROVIDER_PORT: port })).toBe(`http://127.0.0.1:${port}`);
  });

  test("SANDBOX_PROVIDER_URL: it is the address, whatever the port behind it", async () => {
    const address = "https://sandbox.example.com";
    const settings = { SANDBOX_PROVIDER_URL: address, SANDBOX_PROVIDER_PORT: String(await freePort()) };
    expect(await sandboxAddress(folder(), settings)).toBe(address);
  });

  test.each(["", "0"])("SANDBOX_PROVIDER_PORT='%s': it is the port that the data folder keeps", async (port) => {
    const dataDir = folder();
    expect(await sandboxAddress(dataDir, { SANDBOX_PROVIDER_PORT: port })).toBe(await sandboxAddress(dataDir, {}));
  });

  test("a port that another program has: the start is refused, and the error names the setting", async () => {
    const port = await listener();
    await expect(sandboxAddress(folder(), { SANDBOX_PROVIDER_PORT: String(port) })).rejects.toThrow(
      `Port ${port} on 127.0.0.1 is taken by another program; set SANDBOX_PROVIDER_PORT to a free one.`,
    );
  });
});
