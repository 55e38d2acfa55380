/** A second installation on a bus: whatever is started of it ends with one sentence that names both. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { claimBus } from "../../services/bus/installation.ts";
import { newInstallation, type TestInstallation } from "../support/installations.ts";
import { runProgram } from "../support/running-program.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const OWNER = "3f0f7f0e-0000-4000-8000-000000000001";

describe("a start with the bus of another installation", () => {
  const folder = temporaryFolder("two-installations");
  let nats: TestServer;
  let second: TestInstallation;
  beforeAll(async () => {
    [nats, second] = await Promise.all([startNats(), newInstallation()]);
    const log = { info: () => undefined, warn: () => undefined };
    const bus = await connectBus({ url: nats.url, name: "test", log });
    await claimBus({ bus, installation: { id: OWNER, database: "elsewhere" } }, { replicas: 1, logs: 1 });
    await ensureStreams(bus, { replicas: 1, logs: 1 });
    await bus.close();
  });
  afterAll(async () => {
    await Promise.all([nats.stop(), second.drop()]);
    folder.remove();
  });

  test.each([
    ["npm start", "deploy/start.ts", []],
    ["services of their own", "services/main.ts", ["relay"]],
  ])("%s: one sentence with both, exit code 1", async (_what, script, args) => {
    const own = { NATS_URL: nats.url, DATABASE_URL: second.url, PORT: "0", DATA_DIR: folder.path, LOG_LEVEL: "silent" };
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
