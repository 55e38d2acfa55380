import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const START = join(import.meta.dirname, "..", "..", "deploy", "start.ts");
const SERVERS = join(import.meta.dirname, "programs", "servers.ts");
const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

function folder(): string {
  const made = temporaryFolder("start");
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

async function listener(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  cleanUps.push(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe("npm start refuses with one sentence and exit code 1", () => {
  test("when the port is taken, before it starts anything", async () => {
    const port = await listener();
    const dataDir = folder();
    const program = run(START, { PORT: String(port), DATA_DIR: dataDir });
    expect(await program.ended).toBe(1);
    expect(program.output()).toBe(`Port ${port} on 127.0.0.1 is taken by another program; set PORT to a free one.\n`);
    expect(existsSync(join(dataDir, "nats"))).toBe(false);
  });

  test("when the address is not one of this machine", async () => {
    const program = run(START, { HOST: "192.0.2.1", DATA_DIR: folder() });
    expect(await program.ended).toBe(1);
    expect(program.output()).toBe(
      "It is not possible to listen on 192.0.2.1: this machine does not have that address (EADDRNOTAVAIL); set HOST to an address of this machine.\n",
    );
  });

  test("when another start uses the data folder, and not any more when that one was killed", async () => {
    const dataDir = folder();
    const first = run(SERVERS, { DATA_DIR: dataDir });
    await first.waitFor(/database=/);
    const second = run(START, { DATA_DIR: dataDir });
    expect(await second.ended).toBe(1);
    expect(second.output()).toBe(
      `The data folder ${dataDir} is in use by another start (process ${first.pid}); stop that one first, or choose another folder with DATA_DIR.\n`,
    );
    first.process.kill("SIGKILL");
    await first.ended;
    const third = run(SERVERS, { DATA_DIR: dataDir });
    await third.waitFor(/database=/);
    third.process.kill("SIGTERM");
    expect(await third.ended).toBe(0);
  });

  test("when the data folder cannot be written", async () => {
    const program = run(START, { DATA_DIR: "/proc/data" });
    expect(await program.ended).toBe(1);
    expect(program.output()).toBe(
      "The data folder /proc/data (DATA_DIR) cannot be used: there is no such file or folder (ENOENT); correct the path.\n",
    );
  });

  test("when this user may not write the data folder", async () => {
    const dataDir = join(folder(), "data");
    mkdirSync(dataDir);
    chmodSync(dataDir, 0o555);
    // Root may write everywhere, so for root another account has to try.
    const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    chmodSync(join(dataDir, ".."), 0o755);
    const program = run(START, { DATA_DIR: dataDir }, account);
    expect(await program.ended).toBe(1);
    expect(program.output()).toMatch(
      /^The data folder \S+ \(DATA_DIR\) cannot be used: this user has no permission \(EACCES\); give .*\.\n$/,
    );
  });

  test("when a setting is unusable, and says what is allowed", async () => {
    const program = run(START, { PORT: "abc" });
    expect(await program.ended).toBe(1);
    expect(program.output()).toBe(
      "The setting PORT is not usable: it must be a whole number from 0 to 65535, where 0 takes any free port.\n",
    );
  });

  test("when a metrics port is taken, before it starts anything", async () => {
    const taken = await listener();
    const dataDir = folder();
    const program = run(START, { METRICS_PORT: String(taken), DATA_DIR: dataDir });
    expect(await program.ended).toBe(1);
    expect(program.output()).toBe(
      `Port ${taken} on 127.0.0.1 is taken by another program; set METRICS_PORT to a free one.\n`,
    );
    expect(existsSync(join(dataDir, "nats"))).toBe(false);
  });

  test.each([
    ["NATS_URL", "hello", "it must be an address like nats://token@127.0.0.1:4222, several between commas"],
    ["DATABASE_URL", "hello", "it must be an address like postgres://user:password@host:5432/database"],
  ])("when %s is %s: an example of a good address", async (name, value, rule) => {
    const program = run(START, { [name]: value });
    expect(await program.ended).toBe(1);
    expect(program.output()).toBe(`The setting ${name} is not usable: ${rule}.\n`);
  });

  test("when only a part reads the unusable setting, before it starts anything", async () => {
    const dataDir = join(folder(), "data");
    const program = run(START, { STATION_LEASE_MS: "99999999", DATA_DIR: dataDir });
    expect(await program.ended).toBe(1);
    expect(program.output()).toBe(
      "The setting STATION_LEASE_MS is not usable: it must be a whole number from 1000 to 3600000.\n",
    );
    expect(existsSync(dataDir)).toBe(false);
  });

  test("when a setting is unusable, without printing its value", async () => {
    const program = run(START, { DATABASE_URL: "mysql://user:hidden@host/db" });
    expect(await program.ended).toBe(1);
    expect(program.output()).toMatch(/^The setting DATABASE_URL is not usable: .*\.\n$/);
    expect(program.output()).not.toContain("hidden");
  });
});
