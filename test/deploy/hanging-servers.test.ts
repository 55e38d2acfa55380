/** Servers that accept connections and do nothing useful with them: what a start prints, and how soon Ctrl-C ends it. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, type TestContext, test } from "vitest";
import { deployLimits } from "../../deploy/limits.ts";
import { type Fault, type FaultyServer, startFaultyServer } from "../support/faulty-server.ts";
import { isRunning, type RunningProgram, runProgram } from "../support/running-program.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";
import { serverFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const CTRL_C_MS = 2_000;

let nats: TestServer;
let database: TestDatabase;
beforeAll(async () => {
  [nats, database] = await Promise.all([startNats(), cloneDatabase()]);
});
afterAll(async () => {
  await Promise.all([nats.stop(), database.drop()]);
});

interface Servers {
  readonly bus: FaultyServer;
  readonly store: FaultyServer;
}

async function servers(context: TestContext, faults: { readonly bus: Fault; readonly store: Fault }): Promise<Servers> {
  const bus = await startFaultyServer(nats.url, faults.bus);
  const store = await startFaultyServer(database.url, faults.store);
  context.onTestFinished(async () => {
    await Promise.all([bus.stop(), store.stop()]);
  });
  return { bus, store };
}

function run(context: TestContext, { bus, store }: Servers, program: string, args: string[] = []): RunningProgram {
  const folder = serverFolder("hanging");
  const own = { NATS_URL: bus.url, DATABASE_URL: store.url, PORT: "0", DATA_DIR: folder.path, LOG_LEVEL: "warn" };
  const env = { ...process.env, ...own };
  const running = runProgram(process.execPath, [join(CHECKOUT, program), ...args], { env });
  context.onTestFinished(async () => {
    if (isRunning(running.pid)) running.process.kill("SIGKILL");
    await running.ended;
    folder.remove();
  });
  return running;
}

async function dialled(context: TestContext, server: FaultyServer): Promise<void> {
  await context.expect.poll(() => server.dials(), { timeout: 25_000, interval: 20 }).toBeGreaterThan(0);
}

/** Milliseconds from the signal to the end. */
async function endedAfter(program: RunningProgram, signal: NodeJS.Signals): Promise<number> {
  const startedAtMs = performance.now();
  program.process.kill(signal);
  await program.ended;
  return performance.now() - startedAtMs;
}

describe.concurrent("npm start", () => {
  test("a PostgreSQL that is ready and then silent: it ends with one sentence", async (context) => {
    const faulty = await servers(context, { bus: "none", store: "ready then silent" });
    const program = run(context, faulty, "deploy/start.ts");
    await dialled(context, faulty.store);
    const startedAtMs = performance.now();
    context.expect(await program.ended).toBe(1);
    context.expect(performance.now() - startedAtMs).toBeLessThan(deployLimits.externalServerMs + CTRL_C_MS);
    const sentence = `The PostgreSQL at 127.0.0.1:${faulty.store.port} (DATABASE_URL) cannot be used: the server does not answer (`;
    context.expect(program.output()).toMatch(/^[^\n]*; check [^\n]*\.\n$/);
    context.expect(program.output()).toContain(sentence);
  });

  test("a NATS that closes connections: it ends with one sentence", async (context) => {
    const faulty = await servers(context, { bus: "close", store: "none" });
    const program = run(context, faulty, "deploy/start.ts");
    context.expect(await program.ended).toBe(1);
    const sentence = `The NATS at 127.0.0.1:${faulty.bus.port} (NATS_URL) cannot be used: the server there does not answer as a NATS server does (`;
    context.expect(program.output()).toMatch(/^[^\n]*; correct [^\n]*\.\n$/);
    context.expect(program.output()).toContain(sentence);
    context.expect(faulty.bus.dials()).toBeLessThan(30);
  });
});

describe("npm start that waits for a server", () => {
  test.for([
    { bus: "silent", store: "none" },
    { bus: "none", store: "ready then silent" },
  ] as const)("$bus and $store: the first Ctrl-C ends it", async (faults, context) => {
    const faulty = await servers(context, faults);
    const program = run(context, faulty, "deploy/start.ts");
    await dialled(context, faults.bus === "none" ? faulty.store : faulty.bus);
    context.expect(await endedAfter(program, "SIGINT")).toBeLessThan(CTRL_C_MS);
    context.expect(program.output()).toBe("Stopping (SIGINT) …\nStopped.\n");
    context.expect(await program.ended).toBe(0);
  });
});

describe("a process that waits for a server", () => {
  test.for([
    { script: "gateway/main.ts", args: [], faults: { bus: "silent", store: "none" }, signal: "SIGTERM" },
    { script: "services/main.ts", args: ["stations"], faults: { bus: "silent", store: "none" }, signal: "SIGINT" },
    { script: "services/main.ts", args: ["relay"], faults: { bus: "none", store: "silent" }, signal: "SIGTERM" },
  ] as const)("$script $args: a signal ends it", async ({ script, args, faults, signal }, context) => {
    const faulty = await servers(context, faults);
    const program = run(context, faulty, script, [...args]);
    await dialled(context, faults.bus === "none" ? faulty.store : faulty.bus);
    context.expect(await endedAfter(program, signal)).toBeLessThan(CTRL_C_MS);
  });
});

describe("a system that runs", () => {
  test("both servers fall silent: the first Ctrl-C ends it", { timeout: 120_000 }, async (context) => {
    const faulty = await servers(context, { bus: "none", store: "none" });
    const program = run(context, faulty, "deploy/start.ts");
    await program.waitFor(/Ctrl-C stops within/);
    faulty.bus.become("silent");
    faulty.store.become("silent");
    context.expect(await endedAfter(program, "SIGINT")).toBeLessThan(CTRL_C_MS);
    context.expect(await program.ended).toBe(0);
  });
});
