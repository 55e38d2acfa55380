/** The embedded servers keep their data, restart after a crash, and survive a full disk. */

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "nats";
import postgres from "postgres";
import { afterAll, afterEach, describe, expect, inject, test, vi } from "vitest";
import { type NatsServer, startNats, untilUnhealthy } from "../../deploy/embedded/nats.ts";
import { deployLimits } from "../../deploy/limits.ts";
import { guideBlock, operationsGuide } from "../support/guide.ts";
import { onlyWhere } from "../support/only-where.ts";
import { isRunning, type RunningProgram, runProgram } from "../support/running-program.ts";
import { cloneDatabase, startNats as startTestNats } from "../support/servers.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { serverFolder } from "../support/temporary-folder.ts";

const PROGRAM = join(import.meta.dirname, "programs", "servers.ts");
const isRoot = process.getuid?.() === 0;
/** Most tests use the data folder of the previous test, because making a database takes longer than the rest of a test. */
const shared = serverFolder("embedded-shared");
/** The newest start on this folder. The next test uses it if it still runs. */
let onShared: RunningProgram | undefined;
const folders: (() => void)[] = [];
/** The watchdog counts whole seconds, so it may take one or two seconds longer than its grace time. */
const ORPHAN_WAIT = { timeout: deployLimits.orphanGraceMs + 3_000, interval: 50 };
const programs: RunningProgram[] = [];

afterEach(async () => {
  for (const program of programs.splice(0)) {
    program.process.kill("SIGTERM");
    await program.ended;
  }
  for (const remove of folders.splice(0)) remove();
});

afterAll(async () => {
  onShared?.process.kill("SIGTERM");
  await onShared?.ended;
  shared.remove();
});

function folder(): string {
  const made = serverFolder("embedded");
  folders.push(made.remove);
  return made.path;
}

const startOnShared = (): RunningProgram => {
  onShared = start(shared.path);
  programs.splice(programs.indexOf(onShared), 1);
  return onShared;
};
/** The program that runs on the shared folder. Starts one if none runs. */
const running = (): RunningProgram => (onShared !== undefined && isRunning(onShared.pid) ? onShared : startOnShared());

function start(dataDir: string, options: { uid?: number; gid?: number; environment?: NodeJS.ProcessEnv } = {}) {
  const { environment, ...account } = options;
  // Port 0 is any free port, so that parallel test files do not use the same port.
  const env = { ...process.env, PORT: "0", DATA_DIR: dataDir, NATS_URL: "", DATABASE_URL: "", ...environment };
  const program = runProgram(process.execPath, [PROGRAM], { env, cwd: "/", ...account });
  programs.push(program);
  return program;
}

async function addresses(program: RunningProgram): Promise<{ nats: string; database: string }> {
  const [, nats = "", database = ""] = await program.waitFor(/nats=(\S+) database=(\S+)/);
  return { nats, database };
}

async function stop(program: RunningProgram): Promise<void> {
  program.process.kill("SIGTERM");
  expect(await program.ended).toBe(0);
}

/** The process ids of the two servers, from their pid files. */
function serverPids(dataDir: string): number[] {
  const files = [join(dataDir, "nats", "nats-server.pid"), join(dataDir, "postgres", "postmaster.pid")];
  return files.map((file) => Number.parseInt(readFileSync(file, "utf8"), 10));
}

async function natsConnection(address: string) {
  const url = new URL(address);
  return await connect({ servers: url.host, token: url.username });
}

async function store(where: { nats: string; database: string }): Promise<void> {
  const sql = postgres(where.database, { max: 1, onnotice: () => undefined });
  await sql`create table if not exists kept (word text primary key)`;
  await sql`insert into kept values ('row') on conflict do nothing`;
  await sql.end();
  const connection = await natsConnection(where.nats);
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: "KEPT", subjects: ["kept"] });
  await jetstream(connection).publish("kept", "message");
  await connection.close();
}

async function readStored(where: { nats: string; database: string }): Promise<unknown[]> {
  const sql = postgres(where.database, { max: 1 });
  const rows = await sql`select word from kept`;
  await sql.end();
  const connection = await natsConnection(where.nats);
  const manager = await jetstreamManager(connection);
  const message = await manager.streams.getMessage("KEPT", { last_by_subj: "kept" });
  await connection.close();
  return [rows[0]?.word, message?.string()];
}

describe("the embedded servers", () => {
  test("a restart: the servers keep their data, the secrets are private, and no server keeps running", async () => {
    const dataDir = shared.path;
    const first = running();
    await store(await addresses(first));
    const pids = serverPids(dataDir);
    await stop(first);
    expect(pids.map(isRunning)).toEqual([false, false]);
    expect(statSync(join(dataDir, "secrets.json")).mode & 0o777).toBe(0o600);

    const second = startOnShared();
    expect(await readStored(await addresses(second))).toEqual(["row", "message"]);
  });

  test("the parent is killed with SIGKILL: both servers end within the grace time, and the next start has the data", async () => {
    const dataDir = shared.path;
    const first = running();
    await store(await addresses(first));
    const pids = serverPids(dataDir);
    first.process.kill("SIGKILL");
    await first.ended;
    // The watchdog stops the servers in order, and kills a server that has not ended by the grace time.
    await vi.waitFor(() => expect(pids.map(isRunning)).toEqual([false, false]), ORPHAN_WAIT);

    const second = startOnShared();
    expect(await readStored(await addresses(second))).toEqual(["row", "message"]);
  });

  test("servers that survive their watchdog: the next start on their data folder stops them", async () => {
    const dataDir = shared.path;
    const first = running();
    await store(await addresses(first));
    const pids = serverPids(dataDir);
    const children = readFileSync(`/proc/${first.pid}/task/${first.pid}/children`, "utf8")
      .trim()
      .split(" ")
      .map(Number);
    const watchdog = children.filter((pid) => !pids.includes(pid));
    expect(watchdog).toHaveLength(1);
    for (const pid of watchdog) process.kill(pid, "SIGKILL");
    first.process.kill("SIGKILL");
    await first.ended;
    expect(pids.map(isRunning)).toEqual([true, true]);

    const second = startOnShared();
    expect(await readStored(await addresses(second))).toEqual(["row", "message"]);
    expect(pids.map(isRunning)).toEqual([false, false]);
  });

  test("a killed server: the parent restarts it at its address and with its data", async () => {
    const dataDir = shared.path;
    const program = running();
    const where = await addresses(program);
    await store(where);
    const before = serverPids(dataDir);
    for (const pid of before) process.kill(pid, "SIGKILL");
    await Promise.all([program.waitFor(/nats-server is up again/), program.waitFor(/PostgreSQL is up again/)]);
    expect(before.map(isRunning)).toEqual([false, false]);
    expect(await readStored(where)).toEqual(["row", "message"]);
    expect(program.output()).not.toMatch(/\n\s+at /);
  });

  test("secrets.json is lost: one sentence names the guide, whose commands set a new password and keep the data", async () => {
    const dataDir = shared.path;
    const first = running();
    const where = await addresses(first);
    await store(where);
    const sql = postgres(where.database, { max: 1, onnotice: () => undefined });
    await sql`create table provider_secrets (word text)`;
    await sql`insert into provider_secrets values ('sealed')`;
    await sql.end();
    await stop(first);
    rmSync(join(dataDir, "secrets.json"));

    const second = start(dataDir);
    expect(await second.ended).toBe(1);
    expect(second.output()).toMatch(
      /\nThe password in secrets\.json does not open the database of the data folder: restore that file; where it is lost, follow "When a secret is lost" in docs\/operations\.md\.\n$/,
    );

    const commands = guideBlock("sh", "--single", operationsGuide);
    const env = { ...process.env, DATA_DIR: dataDir };
    const checkout = join(import.meta.dirname, "..", "..");
    expect(spawnSync("sh", ["-euc", commands], { cwd: checkout, env }).status).toBe(0);
    const third = await addresses(startOnShared());
    expect(await readStored(third)).toEqual(["row", "message"]);
    const again = postgres(third.database, { max: 1 });
    expect(await again`select from provider_secrets`).toHaveLength(0);
    await again`drop table provider_secrets`;
    await again.end();
  });

  test("a server that cannot restart: both servers stop, and the program prints one sentence and exits with 1", async () => {
    const dataDir = shared.path;
    const program = running();
    await addresses(program);
    const pids = serverPids(dataDir);
    const before = program.output().length;
    const version = join(dataDir, "postgres", "PG_VERSION");
    const intact = readFileSync(version);
    writeFileSync(version, "99\n");
    process.kill(pids[1] ?? 0, "SIGKILL");
    const exitCode = await program.ended;
    writeFileSync(version, intact);
    expect(exitCode).toBe(1);
    const output = program.output().slice(before);
    expect(output).toMatch(/\nThe data folder \S+postgres belongs to PostgreSQL 99, and this is PostgreSQL 18;/);
    expect(output).not.toMatch(/\n\s+at |is up again/);
    expect(pids.map(isRunning)).toEqual([false, false]);
  });

  test("another process with the id of an earlier server: a start does not stop it", async () => {
    const dataDir = shared.path;
    const first = running();
    await addresses(first);
    await stop(first);
    const bystander = runProgram("sleep", ["60"], isRoot ? { uid: statSync(join(dataDir, "postgres")).uid } : {});
    writeFileSync(join(dataDir, "nats", "nats-server.pid"), `${bystander.pid}\n`);
    writeFileSync(join(dataDir, "postgres", "postmaster.pid"), `${bystander.pid}\n${join(dataDir, "postgres")}\n`);

    const second = startOnShared();
    await addresses(second);
    expect(isRunning(bystander.pid)).toBe(true);
    bystander.process.kill("SIGKILL");
    await bystander.ended;
  });

  test("a data folder of another PostgreSQL version: the start prints one sentence and exits with 1", async () => {
    const dataDir = folder();
    mkdirSync(join(dataDir, "postgres"));
    writeFileSync(join(dataDir, "postgres", "PG_VERSION"), "99\n");
    const program = start(dataDir);
    expect(await program.ended).toBe(1);
    const lastLine = program.output().trim().split("\n").at(-1);
    expect(lastLine).toMatch(/^The data folder \S+postgres belongs to PostgreSQL 99, and this is PostgreSQL 18; .*\.$/);
  });

  test("NATS_URL and DATABASE_URL: no embedded server starts, and the error names a server that does not answer", async () => {
    // The third start waits some seconds for its server, so it begins before the two others.
    const third = start(folder(), { environment: { NATS_URL: "nats://secret@127.0.0.1:9" } });
    const where = await addresses(running());
    const dataDir = folder();
    const second = start(dataDir, { environment: { NATS_URL: where.nats, DATABASE_URL: where.database } });
    expect(await addresses(second)).toEqual(where);
    expect(() => statSync(join(dataDir, "postgres"))).toThrow("ENOENT");

    expect(await third.ended).toBe(1);
    expect(third.output()).toBe(
      "The NATS at 127.0.0.1:9 (NATS_URL) cannot be used: nothing listens at that address (ECONNREFUSED); start the server, or correct host and port.\n",
    );
  });

  test.runIf(onlyWhere(isRoot, "starting as root"))(
    "a start as root, below a folder that no other account may enter: the servers start and keep their data",
    async () => {
      const dataDir = join("/root", `device-payments-${process.pid}`);
      folders.push(() => rmSync(dataDir, { recursive: true, force: true }));
      mkdirSync(dataDir, { mode: 0o700 });
      const first = start(dataDir);
      await store(await addresses(first));
      await stop(first);
      const second = start(dataDir);
      expect(await readStored(await addresses(second))).toEqual(["row", "message"]);
    },
  );

  test("a start as an ordinary user without a home: the servers start", async () => {
    const dataDir = folder();
    // Without root, the test itself runs as an ordinary user.
    if (isRoot) chownSync(dataDir, 65_534, 65_534);
    const account = isRoot ? { uid: 65_534, gid: 65_534 } : {};
    const program = start(dataDir, { ...account, environment: { HOME: "/nonexistent" } });
    await store(await addresses(program));
    await stop(program);
  });
});

describe("an embedded nats-server on a small disk", () => {
  const KILOBYTE = 1_024;
  const disk = mountSmallDisk("nats-health", 16);
  const token = randomBytes(12).toString("hex");
  const servers: NatsServer[] = [];
  let nc: NatsConnection | undefined;

  afterEach(async () => {
    await nc?.close();
    for (const server of servers.splice(0)) await server.child.stop();
  });
  afterAll(disk.remove);

  async function startOnDisk(): Promise<NatsServer> {
    const files = { folder: join(disk.path, "nats"), logFile: join(disk.path, "nats-server.log") };
    const server = await startNats({ binary: inject("natsBinary"), ...files, token });
    servers.push(server);
    nc = await connect({ servers: `127.0.0.1:${server.port}`, token });
    return server;
  }

  /** Publishes messages of 64 kilobytes until one is not acknowledged; returns the sequences of the others. */
  async function publishUntilRefused(connection: NatsConnection, atMost: number): Promise<number[]> {
    const sequences: number[] = [];
    const js = jetstream(connection, { timeout: 5_000 });
    try {
      while (sequences.length < atMost) {
        sequences.push((await js.publish("kept", new Uint8Array(64 * KILOBYTE))).seq);
      }
    } catch {
      // The disk is full.
    }
    return sequences;
  }

  test("a full disk: the server reports unhealthy, and a restarted server has every acknowledged message", async () => {
    const server = await startOnDisk();
    const connection = nc as NatsConnection;
    await (await jetstreamManager(connection)).streams.add({ name: "KEPT", subjects: ["kept"] });
    const over = new AbortController();
    const unhealthy = untilUnhealthy(server.healthUrl, over.signal);
    const sequences = await publishUntilRefused(connection, 10_000);
    expect(await unhealthy).toMatch(/no space left on device/);
    disk.grow(64);
    // The server stays unhealthy until it restarts, also with free space.
    expect((await fetch(server.healthUrl)).status).toBe(503);
    over.abort();
    await connection.close();
    await server.child.stop();

    await startOnDisk();
    const manager = await jetstreamManager(nc as NatsConnection);
    const { state } = await manager.streams.info("KEPT");
    expect([state.first_seq, state.last_seq, state.messages]).toEqual([1, sequences.at(-1), sequences.length]);
    expect(await publishUntilRefused(nc as NatsConnection, 10)).toHaveLength(10);
  });

  test("a start with little space: the server accepts messages, and more of them after space is free again", async () => {
    // Less space is free than the server uses. Without our setting it would choose a limit below what it has stored.
    disk.fill(2 * KILOBYTE * KILOBYTE);
    const server = await startOnDisk();
    expect(await publishUntilRefused(nc as NatsConnection, 20)).toHaveLength(20);
    disk.empty();
    expect(await publishUntilRefused(nc as NatsConnection, 100)).toHaveLength(100);
    const root = new URL("/varz", server.healthUrl);
    // The monitoring port answers below its secret path only.
    expect((await fetch(root)).status).toBe(404);
  });
});

describe("the test servers", () => {
  test("a killed nats-server: its restart has the same address and the acknowledged messages", async () => {
    const server = await startTestNats();
    const before = await natsConnection(server.url);
    const manager = await jetstreamManager(before);
    await manager.streams.add({ name: "KEPT", subjects: ["kept"] });
    await jetstream(before).publish("kept", "message");
    await server.kill9();
    await before.close();
    await server.restart();
    const after = await natsConnection(server.url);
    const message = await (await jetstreamManager(after)).streams.getMessage("KEPT", { last_by_subj: "kept" });
    expect(message?.string()).toBe("message");
    await after.close();
    await server.stop();
  });

  test("a client without the token: the nats-server refuses it", async () => {
    const server = await startTestNats();
    await expect(connect({ servers: new URL(server.url).host })).rejects.toThrow(/authorization/i);
    await server.stop();
  });

  test("the databases of two tests: both are migrated, and neither has the other's tables", async () => {
    const [one, other] = [await cloneDatabase(), await cloneDatabase()];
    const sqlOne = postgres(one.url, { max: 1 });
    const sqlOther = postgres(other.url, { max: 1 });
    await sqlOne`create table only_here (word text)`;
    expect((await sqlOther`select to_regclass('only_here') is null as absent`)[0]?.absent).toBe(true);
    expect((await sqlOther`select count(*)::int as count from schema_migrations`)[0]?.count).toBeGreaterThan(0);
    // An open connection must not prevent the drop of a test's database.
    await one.drop();
    await sqlOther.end();
    await other.drop();
    await sqlOne.end({ timeout: 0 });
  });
});
