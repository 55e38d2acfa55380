/** A single nats-server whose disk was full: it runs, but stores nothing until it is started again. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { BUCKETS } from "../../services/bus/streams.ts";
import { notReady } from "../../services/runtime/run-services.ts";
import { freePort } from "../support/free-port.ts";
import { type RunningProgram, runProgram } from "../support/running-program.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const WAIT = { timeout: 30_000, interval: 50 };
/** Longer than the pause between two checks, and longer than two checks without an answer. */
const TWO_QUESTIONS_MS = 7_500;
/** Longer than one check, and shorter than two. */
const STALL_MS = 3_000;
const TEST_MS = 60_000;
const disk = mountSmallDisk("server-disk", 48);
const lines: string[] = [];
const log = {
  info: (_fields: object, message: string) => void lines.push(`info ${message}`),
  warn: (_fields: object, message: string) => void lines.push(`warn ${message}`),
};
let port: number;
let server: RunningProgram;
let bus: Bus;

async function startServer(): Promise<RunningProgram> {
  const options = [
    "--addr",
    "127.0.0.1",
    "--port",
    String(port),
    "--jetstream",
    "--store_dir",
    join(disk.path, "nats"),
  ];
  const started = runProgram(inject("natsBinary").path, options);
  await started.waitFor(/Server is ready/);
  return started;
}
const reasons = () => notReady({ stopping: new AbortController().signal }, bus);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

beforeAll(async () => {
  port = await freePort();
  server = await startServer();
  bus = await connectBus({ url: `nats://127.0.0.1:${port}`, name: "test", log, awaitsQuorum: true });
  await ensureStreams(bus, { replicas: 1, logs: 1 });
});
afterAll(async () => {
  await bus.close();
  server.process.kill("SIGKILL");
  await server.ended;
  disk.remove();
});

describe("a process with a single nats-server", () => {
  it("the server stalls for three seconds, like one with a slow disk: the process stays ready", {
    timeout: TEST_MS,
  }, async () => {
    await pause(BUS_LIMITS.singleFreshMs - 500);
    server.process.kill("SIGSTOP");
    const seen = new Set<string>();
    for (let waitedMs = 0; waitedMs < TWO_QUESTIONS_MS; waitedMs += WAIT.interval) {
      if (waitedMs === STALL_MS) server.process.kill("SIGCONT");
      for (const reason of reasons()) seen.add(reason);
      await pause(WAIT.interval);
    }
    expect([[...seen], lines]).toEqual([[], []]);
  });

  it("its disk was full: the process is unready, and its log has the next step", { timeout: TEST_MS }, async () => {
    disk.fill(0);
    // This is more than the free rest of a file's last page in the file system.
    for (const { name } of BUCKETS) bus.nc.publish(`$KV.${name}.test`, "x".repeat(10_000));
    await vi.waitFor(() => expect(reasons()).toEqual(["bus"]), WAIT);
    const sentence = `warn The NATS at 127.0.0.1:${port} (NATS_URL) runs, but stores nothing, as after its disk was full: free space on that disk, and start nats-server again.`;
    await vi.waitFor(() => expect(lines).toEqual([sentence]), WAIT);
    disk.empty();
    await pause(TWO_QUESTIONS_MS);
    expect([reasons(), lines]).toEqual([["bus"], [sentence]]);
  });

  it("the server is started again after its disk was full: the process is ready", { timeout: TEST_MS }, async () => {
    server.process.kill("SIGKILL");
    await server.ended;
    server = await startServer();
    await vi.waitFor(() => expect(reasons()).toEqual([]), WAIT);
    expect(lines).toContain("info NATS stores messages again");
  });

  it("a bucket that is missing: the process stays ready, because `migrate` repairs that", {
    timeout: TEST_MS,
  }, async () => {
    for (const { name } of BUCKETS) await bus.jsm.streams.delete(`KV_${name}`);
    lines.length = 0;
    await pause(TWO_QUESTIONS_MS);
    expect([reasons(), lines]).toEqual([[], []]);
  });
});
