/** `npm start` with a database restored from a backup, while devices and guests have numbers that were given after it. */
import { execFileSync } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { cashierAt, collectAt, sandboxFacts } from "../support/demo-station.ts";
import { startPorts } from "../support/free-port.ts";
import { isRunning, type RunningProgram, runProgram } from "../support/running-program.ts";
import { serverFolder } from "../support/temporary-folder.ts";

const START = join(import.meta.dirname, "..", "..", "deploy", "start.ts");
/** Three starts, on a machine that is busy with other tests. */
const TEST_MS = 300_000;

const folder = serverFolder("restored");
let program: RunningProgram | undefined;

afterAll(async () => {
  if (program !== undefined && isRunning(program.pid)) program.process.kill("SIGKILL");
  await program?.ended;
  folder.remove();
});

async function start(...args: readonly string[]): Promise<void> {
  const env = { ...process.env, NATS_URL: "", DATABASE_URL: "", ...(await startPorts()), DATA_DIR: folder.path };
  program = runProgram(process.execPath, [START, ...args], { env });
  await program.waitFor(/Ctrl-C stops within/);
}

async function stop(): Promise<void> {
  program?.process.kill("SIGTERM");
  expect(await program?.ended).toBe(0);
}

test(
  "--database-restored: no number is given again, and an order that was open asks before it is collected",
  async () => {
    const [data, backup] = [join(folder.path, "postgres"), join(folder.path, "postgres.backup")];
    await start();
    const station = `stations/${sandboxFacts(folder.path).demoStation.stationId}`;
    const cashier = await cashierAt(sandboxFacts(folder.path), station);
    const body = { lines: [{ name: "Tea", quantity: 1, unit_amount: "3.10" }] };
    const open = await cashier.good<{ order_id: number }>("POST", `${station}/orders/`, { body });
    await stop();
    execFileSync("cp", ["-a", data, backup]);
    await start();
    const afterBackup = await collectAt(sandboxFacts(folder.path));
    await stop();
    rmSync(data, { recursive: true });
    renameSync(backup, data);

    await start("--database-restored");
    expect(await collectAt(sandboxFacts(folder.path))).toBeGreaterThan(afterBackup + 900_000);
    const again = await cashierAt(sandboxFacts(folder.path), station);
    const collection = { order_id: open.order_id, route: "cash" };
    const refused = await again.call<{ code: string }>("POST", `${station}/intents/`, { body: collection });
    expect([refused.status, refused.body.code]).toEqual([409, "money_may_have_moved"]);
    await stop();
  },
  TEST_MS,
);
