/** `npm run migrate` against a real NATS and a real PostgreSQL. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connectBus } from "../../services/bus/connection.ts";
import { checkStreams } from "../../services/bus/ensure-streams.ts";
import { LAYOUT_VERSION } from "../../services/bus/stream-config.ts";
import { readInstallation } from "../../services/db/installation.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { startFaultyServer } from "../support/faulty-server.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { QUIET } from "../support/quiet-log.ts";
import { runProgram } from "../support/running-program.ts";
import {
  cloneDatabase,
  createEmptyDatabase,
  startNats,
  type TestDatabase,
  type TestServer,
} from "../support/servers.ts";
import { startBus } from "../support/start-bus.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");

describe("npm run migrate", () => {
  let nats: TestServer;
  let database: TestDatabase;
  beforeAll(async () => {
    nats = await startNats();
    database = await createEmptyDatabase();
  });
  afterAll(async () => {
    await database.drop();
    await nats.stop();
  });

  const run = (script: string, ...args: readonly string[]) => runAt(database.url, script, ...args);
  const runAt = async (databaseUrl: string, script: string, ...args: readonly string[]) => {
    const env = { ...process.env, NATS_URL: nats.url, DATABASE_URL: databaseUrl, LOG_LEVEL: "silent" };
    const program = runProgram(process.execPath, [join(CHECKOUT, "services", script), ...args], { env });
    return { code: await program.ended, output: program.output() };
  };

  test("a database that was not migrated: a process refuses to start, in one sentence with the next step", async () => {
    const { code, output } = await run("main.ts", "relay");
    expect(code).toBe(1);
    expect(output).toMatch(
      /^The database at .* lacks the migration 0001_\w+: run `npm run migrate`, and start again\.\n$/,
    );
  });

  test("several runs at once: all succeed, and the bus belongs to the installation", async () => {
    const results = await Promise.all([run("migrate.ts"), run("migrate.ts")]);
    for (const { code, output } of results) {
      expect({ code, output }).toMatchObject({
        code: 0,
        output: expect.stringContaining("with 1 copy each and 1 station log.") as string,
      });
    }
    const bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
    expect(await checkStreams(bus)).toMatchObject({ replicas: 1 });
    const owner = await bus.jsm.streams.getMessage("KV_INSTALLATION", { last_by_subj: "$KV.INSTALLATION.id" });
    expect(owner?.string()).toBe((await readInstallation(database.url)).id);
    await bus.close();
  });

  test("three copies on one server: refused with the server's reason, and nothing is changed", async () => {
    const { code, output } = await run("migrate.ts", "--replicas", "3");
    expect(code).toBe(1);
    expect(output).toMatch(
      /cannot keep the stream KV_INSTALLATION: replicas > 1 not supported in non-clustered mode; ask for one copy \(--replicas 1\), or begin with an empty cluster, see "From one NATS server to three" in docs\/operations\.md\.\n$/,
    );
    const again = await run("migrate.ts");
    expect(again.output).toContain("with 1 copy each and 1 station log.");
  });

  test("another number of logs on an existing bus: refused, and nothing is changed", async () => {
    const { code, output } = await run("migrate.ts", "--logs", "3");
    expect(code).toBe(1);
    expect(output).toMatch(/has 1 station log, and their number never changes: leave --logs out\.\n$/);
  });

  test.each([
    ["--replicas", "7"],
    ["--replicas", "two"],
    ["--logs", "0"],
    ["--copies", "3"],
  ])("%s %s: one sentence, exit code 2", async (...args) => {
    const { code, output } = await run("migrate.ts", ...args);
    expect(code).toBe(2);
    expect(output).toMatch(/^[^\n]*; see --help\.\n$/);
  });

  test("a database that the server does not have: one sentence with the address, exit code 1", async () => {
    const { code, output } = await runAt(`${database.url}_of_nobody`, "migrate.ts");
    expect(code).toBe(1);
    expect(output).toMatch(
      /^The PostgreSQL at \S+ \(DATABASE_URL\) cannot be used: the server has no database of that name \(3D000\); create it, .*\.\n$/,
    );
  });

  test.each(["DATABASE_URL", "NATS_URL"] as const)(
    "the server of %s does not answer: within seconds, it prints for which server it waits",
    async (name) => {
      const silent = await startFaultyServer(name === "NATS_URL" ? nats.url : database.url, "silent");
      const own = { NATS_URL: nats.url, DATABASE_URL: database.url, [name]: silent.url };
      const program = runProgram(process.execPath, [join(CHECKOUT, "services", "migrate.ts")], {
        env: { ...process.env, ...own },
      });
      await program.waitFor(
        new RegExp(`^Waiting for the \\w+ at 127\\.0\\.0\\.1:${silent.port} \\(${name}\\) …$`, "m"),
      );
      program.process.kill();
      await program.ended;
      await silent.stop();
    },
  );

  test("--help: names the arguments and the settings", async () => {
    const { code, output } = await run("migrate.ts", "--help");
    expect(code).toBe(0);
    for (const word of ["--replicas", "DATABASE_URL", "NATS_URL"]) expect(output).toContain(word);
  });
});

describe("a bus with several logs that has lost streams", () => {
  const LOGS = { replicas: 1, logs: 3 };
  let database: TestDatabase;
  beforeAll(async () => {
    database = await cloneDatabase();
    return database.drop;
  });

  test("the bucket of the installation: `migrate` keeps the number of logs, and refuses another one", async () => {
    const { nats, bus } = await prepared();
    await bus.jsm.streams.delete("KV_INSTALLATION");
    await expect(prepareBus(nats.url, database.url, { logs: 1 })).rejects.toMatchObject({ code: "logs_fixed" });
    expect(await prepareBus(nats.url, database.url)).toMatchObject(LOGS);
    expect(await checkStreams(bus)).toMatchObject(LOGS);
  });

  test("all streams but the files, as after an emptying that was cut off: the bus counts as new", async () => {
    const { nats, bus } = await prepared();
    for await (const name of bus.jsm.streams.names()) if (name !== "OBJ_STATEMENTS") await bus.jsm.streams.delete(name);
    expect(await prepareBus(nats.url, database.url, { logs: 1 })).toMatchObject({ logs: 1 });
  });

  test("a new bus for a database that had three: `migrate` keeps the number of logs, and refuses another one", async () => {
    const { nats, stop } = await startBus();
    onTestFinished(stop);
    const restored = await cloneDatabase();
    onTestFinished(restored.drop);
    const sql = openDatabase({ url: restored.url, maxConnections: 1, name: "test" });
    await sql`
      insert into bus_marks (stream, created, sequence, stored)
      select unnest(array['STATION_LOG_0', 'STATION_LOG_1', 'STATION_LOG_2', 'KV_SESSIONS']), '', 0, ''`;
    await closeDatabase(sql);
    await expect(prepareBus(nats.url, restored.url, { logs: 6 })).rejects.toMatchObject({
      code: "logs_fixed",
      message: "This installation has 3 station logs, and their number never changes: leave --logs out.",
    });
    expect(await prepareBus(nats.url, restored.url)).toMatchObject(LOGS);
  });

  test("a bus that a newer version has prepared: `migrate` refuses, and changes nothing", async () => {
    const { nats, bus } = await prepared();
    const { config } = await bus.jsm.streams.info("KV_INSTALLATION");
    const metadata = { ...config.metadata, "device-payments-layout": String(LAYOUT_VERSION + 1) };
    await bus.jsm.streams.update("KV_INSTALLATION", { metadata });
    await bus.jsm.streams.update("KV_CREDENTIALS", { max_msgs_per_subject: 3 });
    await expect(prepareBus(nats.url, database.url)).rejects.toMatchObject({
      code: "layout_newer",
      message: expect.stringMatching(/start them without `migrate`\.$/) as string,
    });
    expect((await bus.jsm.streams.info("KV_CREDENTIALS")).config.max_msgs_per_subject).toBe(3);
  });

  async function prepared() {
    const started = await startBus();
    onTestFinished(started.stop);
    await prepareBus(started.nats.url, database.url, { logs: LOGS.logs });
    return started;
  }
});
