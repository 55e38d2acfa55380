/** Callers of a service when one of its two processes ends, is killed, or is stalled. */

import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { type Caller, PERMISSIONS } from "../../services/bus/messages/caller.ts";
import { createFilial, listFilials } from "../../services/bus/messages/filials.ts";
import { createOrganization } from "../../services/bus/messages/organizations.ts";
import { call } from "../../services/bus/operation.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { QUIET } from "../support/quiet-log.ts";
import { cloneDatabase, startNats, type TestDatabase, type TestServer } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startTestProcess, type TestProcess } from "../support/test-process.ts";

const CALLERS = 6;
const PAUSE_MS = 5;
const STALL_MS = 3_500;
/** The time for a password hash on a busy machine. */
const SEED_MS = 20_000;

interface Called {
  readonly what: "read" | "create";
  readonly startedAtMs: number;
  readonly tookMs: number;
  readonly error: unknown;
}

const folder = temporaryFolder("service-faults");
let nats: TestServer;
let database: TestDatabase;
let bus: Bus;
let processes: TestProcess[];
let caller: Caller;
let isGone = false;
let created = 0;

beforeAll(async () => {
  [nats, database] = await Promise.all([startNats(), cloneDatabase()]);
  await prepareBus(nats.url, database.url);
  processes = [await startRegistry(0), await startRegistry(1)];
  bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
  const request = { name: "Faults", owner: { email: "ana@example.com", name: "Ana" } };
  const { organization, owner } = await call(bus.nc, createOrganization, request, SEED_MS);
  const { organizationId } = organization;
  caller = { userId: owner.userId, name: "Ana", organizationId, role: "owner", permissions: [...PERMISSIONS] };
});
afterAll(async () => {
  await bus.close();
  await Promise.all(processes.map((each) => each.kill9()));
  await Promise.all([nats.stop(), database.drop()]);
  folder.remove();
});

function startRegistry(copy: number): Promise<TestProcess> {
  return startTestProcess({
    name: `registry-${copy}`,
    script: "services/main.ts",
    args: ["registry"],
    environment: { ...process.env, NATS_URL: nats.url, DATABASE_URL: database.url },
    logFile: join(folder.path, `registry-${copy}.log`),
  });
}

/** Calls the service continuously, from 300 ms before `work` to 300 ms after it. Returns the calls and when the work began. */
async function during(work: () => Promise<void>) {
  const calls: Called[] = [];
  const acknowledged: string[] = [];
  const over = new AbortController();
  const loop = async (): Promise<void> => {
    for (let round = 0; !over.signal.aborted; round += 1) {
      const what = round % 4 === 3 ? "create" : "read";
      const startedAtMs = performance.now();
      let error: unknown;
      try {
        if (what === "read") await call(bus.nc, listFilials, { caller, limit: 1 });
        else {
          created += 1;
          const name = `Filial ${created}`;
          await call(bus.nc, createFilial, { caller, name });
          acknowledged.push(name);
        }
      } catch (caught) {
        error = caught;
      }
      calls.push({ what, startedAtMs, tookMs: performance.now() - startedAtMs, error });
      await delay(PAUSE_MS);
    }
  };
  const loops = Array.from({ length: CALLERS }, loop);
  await delay(300);
  const startedAtMs = performance.now();
  await work();
  await delay(300);
  over.abort();
  await Promise.all(loops);
  const names = await filialNames();
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(expect.arrayContaining(acknowledged));
  return { calls, startedAtMs };
}

async function filialNames(): Promise<string[]> {
  const names: string[] = [];
  for (let sinceId = 0, hasMore = true; hasMore; ) {
    const page = await call(bus.nc, listFilials, { caller, sinceId, limit: 500 });
    names.push(...page.filials.map(({ name }) => name));
    sinceId = page.filials.at(-1)?.filialId ?? sinceId;
    ({ hasMore } = page);
  }
  return names;
}

const errorsOf = (calls: readonly Called[]): unknown[] => calls.flatMap(({ error }) => error ?? []);
const longestMs = (calls: readonly Called[]): number => Math.max(...calls.map(({ tookMs }) => tookMs));
const reads = (calls: readonly Called[]): Called[] => calls.filter(({ what }) => what === "read");

describe("two processes of a service", () => {
  /** Restarts the process that the test before has ended. */
  beforeEach(async () => {
    if (isGone) await processes[0]?.restart();
    isGone = false;
  });

  it("one gets SIGTERM: no caller gets an error or waits longer than 500 ms", async () => {
    isGone = true;
    const { calls } = await during(async () => await processes[0]?.stop());
    expect(errorsOf(calls)).toEqual([]);
    expect(longestMs(calls)).toBeLessThan(500);
  });

  it("one is killed: each read is answered within 1.5 s", async () => {
    isGone = true;
    const { calls } = await during(async () => await processes[0]?.kill9());
    expect(errorsOf(reads(calls))).toEqual([]);
    expect(longestMs(reads(calls))).toBeLessThan(1_500);
  });

  it("one is stalled: each read, and each creation that begins after that, is answered within 3 s", async () => {
    const pid = processes[0]?.pid() ?? 0;
    const { calls, startedAtMs } = await during(async () => {
      process.kill(pid, "SIGSTOP");
      await delay(STALL_MS);
      process.kill(pid, "SIGCONT");
    });
    const later = calls.filter((one) => one.what === "read" || one.startedAtMs > startedAtMs);
    expect(errorsOf(later)).toEqual([]);
    expect(longestMs(later)).toBeLessThan(3_000);
    expect(later.filter(({ tookMs }) => tookMs > 300)).not.toEqual([]);
  });
});
