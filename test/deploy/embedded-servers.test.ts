import { chownSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "nats";
import postgres from "postgres";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { deployLimits } from "../../deploy/limits.ts";
import { onlyWhere } from "../support/only-where.ts";
import { isRunning, type RunningProgram, runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const PROGRAM = join(import.meta.dirname, "programs", "servers.ts");
const isRoot = process.getuid?.() === 0;
/** Most tests go on with the data folder of the one before: making a database takes longer than all the rest. */
const shared = temporaryFolder("embedded-shared");
const folders: (() => void)[] = [];
/** The watchdog counts whole seconds, so it may take one or two longer than its grace time. */
const ORPHAN_WAIT = { timeout: deployLimits.orphanGraceMs + 3_000, interval: 50 };
const programs: RunningProgram[] = [];

afterEach(async () => {
  for (const program of programs.splice(0)) {
    program.process.kill("SIGTERM");
    await program.ended;
  }
  for (const remove of folders.splice(0)) remove();
});

afterAll(shared.remove);

function folder(): string {
  const made = temporaryFolder("embedded");
  folders.push(made.remove);
  return made.path;
}

function start(dataDir: string, options: { uid?: number; gid?: number; environment?: NodeJS.ProcessEnv } = {}) {
  const { environment, ...account } = options;
  // Port 0 stands for any free one, so that parallel test files never meet.
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

async function recall(where: { nats: string; database: string }): Promise<unknown[]> {
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
  test("a restart keeps the data, secrets are private, and nothing is left running", async () => {
    const dataDir = shared.path;
    const first = start(dataDir);
    await store(await addresses(first));
    const pids = serverPids(dataDir);
    await stop(first);
    expect(pids.map(isRunning)).toEqual([false, false]);
    expect(statSync(join(dataDir, "secrets.json")).mode & 0o777).toBe(0o600);

    const second = start(dataDir);
    expect(await recall(await addresses(second))).toEqual(["row", "message"]);
  });

  test("after kill -9 of the parent no server survives for long, and the next start has the data", async () => {
    const dataDir = shared.path;
    const first = start(dataDir);
    await store(await addresses(first));
    const pids = serverPids(dataDir);
    first.process.kill("SIGKILL");
    await first.ended;
    // The servers shut down in good order first; what has not ended by the grace time is killed.
    await vi.waitFor(() => expect(pids.map(isRunning)).toEqual([false, false]), ORPHAN_WAIT);

    const second = start(dataDir);
    expect(await recall(await addresses(second))).toEqual(["row", "message"]);
  });

  test("servers that outlived even their watchdog are stopped by the next start on their data folder", async () => {
    const dataDir = shared.path;
    const first = start(dataDir);
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

    const second = start(dataDir);
    expect(await recall(await addresses(second))).toEqual(["row", "message"]);
    expect(pids.map(isRunning)).toEqual([false, false]);
  });

  test("a server that is killed comes back by itself, where it was and with its data", async () => {
    const dataDir = shared.path;
    const program = start(dataDir);
    const where = await addresses(program);
    await store(where);
    const before = serverPids(dataDir);
    for (const pid of before) process.kill(pid, "SIGKILL");
    await Promise.all([program.waitFor(/nats-server is up again/), program.waitFor(/PostgreSQL is up again/)]);
    expect(before.map(isRunning)).toEqual([false, false]);
    expect(await recall(where)).toEqual(["row", "message"]);
    expect(program.output()).not.toMatch(/\n\s+at /);
    await stop(program);
  });

  test("a server that can never come back takes everything down in order, with one sentence and exit code 1", async () => {
    const dataDir = shared.path;
    const program = start(dataDir);
    await addresses(program);
    const pids = serverPids(dataDir);
    const version = join(dataDir, "postgres", "PG_VERSION");
    const intact = readFileSync(version);
    writeFileSync(version, "99\n");
    process.kill(pids[1] ?? 0, "SIGKILL");
    const exitCode = await program.ended;
    writeFileSync(version, intact);
    expect(exitCode).toBe(1);
    expect(program.output()).toMatch(
      /\nThe data folder \S+postgres belongs to PostgreSQL 99, and this is PostgreSQL 18;/,
    );
    expect(program.output()).not.toMatch(/\n\s+at |is up again/);
    expect(pids.map(isRunning)).toEqual([false, false]);
  });

  test("a process that happens to have the id of a server long gone is left alone", async () => {
    const dataDir = shared.path;
    const first = start(dataDir);
    await addresses(first);
    await stop(first);
    const bystander = runProgram("sleep", ["60"], isRoot ? { uid: statSync(join(dataDir, "postgres")).uid } : {});
    writeFileSync(join(dataDir, "nats", "nats-server.pid"), `${bystander.pid}\n`);
    writeFileSync(join(dataDir, "postgres", "postmaster.pid"), `${bystander.pid}\n${join(dataDir, "postgres")}\n`);

    const second = start(dataDir);
    await addresses(second);
    expect(isRunning(bystander.pid)).toBe(true);
    bystander.process.kill("SIGKILL");
    await bystander.ended;
  });

  test("a data folder of another PostgreSQL version: one sentence, exit code 1", async () => {
    const dataDir = folder();
    mkdirSync(join(dataDir, "postgres"));
    writeFileSync(join(dataDir, "postgres", "PG_VERSION"), "99\n");
    const program = start(dataDir);
    expect(await program.ended).toBe(1);
    const said = program.output().trim().split("\n").at(-1);
    expect(said).toMatch(/^The data folder \S+postgres belongs to PostgreSQL 99, and this is PostgreSQL 18; .*\.$/);
  });

  test("NATS_URL and DATABASE_URL skip the embedded servers, and one that does not answer is named", async () => {
    const where = await addresses(start(shared.path));
    const dataDir = folder();
    const second = start(dataDir, { environment: { NATS_URL: where.nats, DATABASE_URL: where.database } });
    expect(await addresses(second)).toEqual(where);
    expect(() => statSync(join(dataDir, "postgres"))).toThrow("ENOENT");

    const third = start(folder(), { environment: { NATS_URL: "nats://secret@127.0.0.1:9" } });
    expect(await third.ended).toBe(1);
    expect(third.output()).toBe(
      "The NATS at 127.0.0.1:9 (NATS_URL) cannot be used: nothing listens at that address (ECONNREFUSED); start the server, or correct host and port.\n",
    );
  });

  test.runIf(onlyWhere(isRoot, "starting as root"))(
    "as root, below a folder that no other account may enter",
    async () => {
      const dataDir = join("/root", `device-payments-${process.pid}`);
      folders.push(() => rmSync(dataDir, { recursive: true, force: true }));
      mkdirSync(dataDir, { mode: 0o700 });
      const first = start(dataDir);
      await store(await addresses(first));
      await stop(first);
      const second = start(dataDir);
      expect(await recall(await addresses(second))).toEqual(["row", "message"]);
    },
  );

  test("as an ordinary user without a home", async () => {
    const dataDir = folder();
    // Whoever runs the tests as an ordinary user is one already.
    if (isRoot) chownSync(dataDir, 65_534, 65_534);
    const account = isRoot ? { uid: 65_534, gid: 65_534 } : {};
    const program = start(dataDir, { ...account, environment: { HOME: "/nonexistent" } });
    await store(await addresses(program));
    await stop(program);
  });
});
