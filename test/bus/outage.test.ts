/** The log while PostgreSQL or NATS is away: one line for each reason and minute, without a stack. */
import { JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "nats";
import { pino } from "pino";
import { Registry } from "prom-client";
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationState } from "../../machines/station/state.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { call, repeatable, serve } from "../../services/bus/operation.ts";
import { failuresOf, outageReason } from "../../services/bus/outage.ts";
import { UnavailableError } from "../../services/bus/refusals.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { addProviderMetrics } from "../../services/providers/metrics.ts";
import { startTaskRunner } from "../../services/providers/task-runner.ts";
import { KeyDeliverer } from "../../services/relay/delivery.ts";
import type { RelayDeps } from "../../services/relay/deps.ts";
import { CommandRunner, type CommandRunnerDeps } from "../../services/stations/command-runner.ts";
import { ConfirmationChecks } from "../../services/stations/confirmation-checks.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { addHostMetrics } from "../../services/stations/metrics.ts";
import { ProviderSaga, type ProviderSagaDeps } from "../../services/stations/provider-saga.ts";
import { SettlementSaga, type SettlementSagaDeps } from "../../services/stations/settlement-saga.ts";
import { StateCache } from "../../services/stations/state-cache.ts";
import { StationLog } from "../../services/stations/station-log.ts";
import { Withdrawals, type WithdrawalsDeps } from "../../services/stations/withdrawals.ts";
import { freePort } from "../support/free-port.ts";
import { ONE_LOG } from "../support/one-log.ts";
import type { TestServer } from "../support/servers.ts";
import { startBus } from "../support/start-bus.ts";

interface Line {
  readonly msg: string;
  readonly reason?: string;
  readonly err?: { readonly stack: string };
}
const lines: Line[] = [];
const LOG = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
const TIMES = 20;
/** Each request waits half a second for the dial of PostgreSQL. */
const REQUESTS = 4;

let nats: TestServer;
let bus: Bus;
beforeAll(async () => {
  const started = await startBus();
  ({ nats, bus } = started);
  return started.stop;
});
beforeEach(() => {
  lines.length = 0;
});

test("an error of JetStream: during an election it is an outage, after a wrong request it is none", () => {
  const error = (err_code: number): Error => new JetStreamApiError({ code: 503, err_code, description: "why" });
  expect(outageReason(error(10_008))).toBe("why");
  expect(outageReason(error(10_059))).toBeUndefined();
});

test("a request fails: without an answer an outage, with an answer that is no JSON or a denied subject none", () => {
  const without = (cause: unknown) => outageReason(new UnavailableError("a.subject", cause));
  expect(without(new errors.TimeoutError())).toBe("No answer came from a.subject in time.");
  expect(without(new SyntaxError("Unexpected token"))).toBeUndefined();
  expect(without(new errors.PermissionViolationError("denied", "publish", "a.subject"))).toBeUndefined();
});

describe("a service's requests", () => {
  const nothing = z.object({});
  const failing = async (subject: string, handler: () => Promise<unknown>): Promise<void> => {
    const operation = repeatable(subject, nothing, nothing);
    const serving = serve({ nc: bus.nc, log: LOG, queue: "test" }, operation, async () => {
      await handler();
      return {};
    });
    for (let time = 0; time < REQUESTS; time += 1) {
      await expect(call(bus.nc, operation, {})).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    }
    serving.unsubscribe();
  };

  test("PostgreSQL is away: one line with the reason, no stack", async () => {
    const url = `postgres://payments@127.0.0.1:${await freePort()}/none`;
    const database = openDatabase({ url, maxConnections: 1, name: "test" });
    await failing("outage.database", () => database`select 1`);
    await closeDatabase(database);
    expect(lines).toMatchObject([
      { msg: "a request failed", reason: "nothing listens at that address (ECONNREFUSED)" },
    ]);
    expect(lines[0]).not.toHaveProperty("err");
  });

  test("an unexpected error: each line has its stack", async () => {
    await failing("outage.unexpected", async () => {
      throw new TypeError("a fault of the program");
    });
    expect(lines.map(({ err }) => err?.stack.includes("a fault of the program"))).toEqual(Array(REQUESTS).fill(true));
  });
});

test("settlements while the settlement service is away: one line for all attempts, no stack", async () => {
  const metrics = addHostMetrics(new Registry());
  const saga = new SettlementSaga({ nc: bus.nc, log: LOG, metrics, mailboxes: {} as SettlementSagaDeps["mailboxes"] });
  const retries = vi.spyOn(metrics.settlementRetries, "add");
  const attestation = { commandId: "c", reference: null, cashierId: 1, confirmsReferenceAlreadyUsed: false, atMs: 0 };
  for (let intentId = 1; intentId <= TIMES; intentId += 1) {
    saga.start(intentId, { intentId, attestation, provider: null } as unknown as PaymentIntent);
  }
  await vi.waitFor(() => expect(retries.mock.calls.length).toBeGreaterThan(3 * TIMES), { timeout: 20_000 });
  for (let partition = 0; partition < PARTITION_COUNT; partition += 1) saga.abandon(partition);
  expect(lines).toMatchObject([{ msg: "a settlement has to wait", reason: expect.stringContaining("No answer came") }]);
  expect(lines[0]).not.toHaveProperty("err");
}, 30_000);

describe("a host's requests while the providers service is away: one line for all attempts, no stack", () => {
  const expectOneLine = (msg: string): void => {
    expect(lines).toMatchObject([{ msg, reason: expect.stringContaining("No answer came") }]);
    expect(lines[0]).not.toHaveProperty("err");
  };

  test("about a recorded confirmation", async () => {
    const checks = new ConfirmationChecks({ nc: bus.nc, log: LOG, tick: () => undefined });
    for (let intentId = 1; intentId <= TIMES; intentId += 1) {
      const provider = { confirmedAtMs: null, configId: 1 };
      const intent = { intentId, status: "created", route: "dynamic_qr", expiresAtMs: 0, provider };
      const state = { stationId: intentId, intent } as unknown as StationState;
      expect(await checks.find(state, { type: "intent_cancel", intentId }, 1)).toBe("unknown");
    }
    expectOneLine("a confirmation could not be checked");
  });

  test("about a QR", async () => {
    const switches = { current: () => NO_KILL_SWITCHES, isTrusted: () => true };
    const deps = { nc: bus.nc, log: LOG, switches, mailboxes: {} } as unknown as ProviderSagaDeps;
    const saga = new ProviderSaga(deps);
    for (let stationId = 1; stationId <= TIMES; stationId += 1) {
      const provider = { configId: 1, confirmedAtMs: null };
      const intent = { intentId: stationId, status: "created", provider };
      saga.observe(stationId, { status: "active", organizationId: 1, intent } as unknown as StationState);
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    for (let partition = 0; partition < PARTITION_COUNT; partition += 1) saga.abandon(partition);
    expectOneLine("the providers service did not answer");
  });

  test("about the end of a QR collection", async () => {
    const withdrawals = new Withdrawals({ nc: bus.nc, log: LOG, mailboxes: {} as WithdrawalsDeps["mailboxes"] });
    for (let stationId = 1; stationId <= TIMES; stationId += 1) {
      const state = { stationId, intent: null, unreportedEnds: [stationId], ended: [] } as unknown as StationState;
      withdrawals.observe(stationId, state);
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    withdrawals.stop();
    expectOneLine("the end of a QR collection is not reported yet");
  });
});

test("tasks of the providers service while PostgreSQL and the hosts are away: one line for each reason, no stack", async () => {
  const database = openDatabase({ url: `postgres://payments@127.0.0.1:${await freePort()}/none` });
  const run = async (): Promise<never> => {
    throw new UnavailableError("station.command", undefined);
  };
  const runner = startTaskRunner({ database, log: LOG, metrics: addProviderMetrics(undefined), run });
  const task = { kind: "confirm", providerKind: "sandbox", detail: {}, attempts: 1, createdAt: new Date() } as const;
  for (let intentId = 1; intentId <= REQUESTS; intentId += 1) runner.start({ ...task, intentId, configId: intentId });
  await runner.stop();
  await closeDatabase(database);
  const failures = lines.filter(({ msg }) => msg.startsWith("a task"));
  expect(failures).toMatchObject([
    { msg: "a task failed", reason: "No answer came from station.command in time." },
    { msg: "a task's end could not be written", reason: "nothing listens at that address (ECONNREFUSED)" },
  ]);
  for (const failure of failures) expect(failure).not.toHaveProperty("err");
  expect(lines.filter(({ msg }) => msg === "provider task")).toHaveLength(REQUESTS);
});

test("outbox rows while PostgreSQL is away: one line for all keys and attempts, no stack", async () => {
  const sql = openDatabase({ url: `postgres://payments@127.0.0.1:${await freePort()}/none` });
  const deliverer = new KeyDeliverer({ sql, log: LOG } as unknown as RelayDeps, () => true);
  const keys = Array.from({ length: TIMES }, (_, index) => `station.${index + 1}`);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    expect(await Promise.all(keys.map((key) => deliverer.deliver(key)))).toEqual(keys.map(() => false));
  }
  await closeDatabase(sql);
  const reason = "nothing listens at that address (ECONNREFUSED)";
  const next = "start the server, or correct host and port";
  expect(lines).toMatchObject([{ msg: expect.stringContaining("could not deliver an outbox key"), reason, next }]);
  expect(lines[0]).not.toHaveProperty("err");
});

test("the same work of several callers: one line for each message and log", () => {
  for (const message of ["a", "b", "a"]) failuresOf(LOG, message).failed(new UnavailableError("x", undefined), {});
  failuresOf(pino({ enabled: false }), "a").failed(new UnavailableError("x", undefined), {});
  expect(lines.map(({ msg }) => msg)).toEqual(["a", "b"]);
});

describe("a host's commands", () => {
  const perform = async (): Promise<void> => {
    const stationLog = new StationLog(bus, ONE_LOG);
    const metrics = addHostMetrics(new Registry());
    const deps = { log: LOG, cache: new StateCache(), metrics, stationLog, isServed: () => true, isHeld: () => true };
    const runner = new CommandRunner(deps as unknown as CommandRunnerDeps);
    const work = { commandId: "c", actor: { kind: "system", id: 0 }, command: { type: "tick" } } as const;
    const stations = Array.from({ length: TIMES }, (_, index) => index + 1);
    await Promise.all(
      stations.map((id) => runner.perform(id, { ...work, requestId: undefined, answer: () => undefined })),
    );
    stationLog.close();
  };

  test(
    "NATS does not answer: one line, no stack",
    async () => {
      nats.signal("SIGSTOP");
      await perform();
      nats.signal("SIGCONT");
      expect(lines).toMatchObject([
        { msg: "a command could not be done", reason: "the NATS server does not answer in time" },
      ]);
      expect(lines[0]).not.toHaveProperty("err");
    },
    10 * STATION_LIMITS.loadMs,
  );

  test("the connection to NATS is down: one line, no stack", async () => {
    await nats.kill9();
    await vi.waitFor(() => expect(bus.isUp()).toBe(false));
    await perform();
    expect(lines).toMatchObject([
      { msg: "a command could not be done", reason: "the connection to NATS is down (bus_down)" },
    ]);
    expect(lines[0]).not.toHaveProperty("err");
  });
});
