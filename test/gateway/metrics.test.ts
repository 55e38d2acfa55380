/** The metrics of a whole system: after one collection, each process reports its part. All labels are in closed lists. */

import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ERROR_CODES, ERRORS } from "../../gateway/http/errors.ts";
import { routes } from "../../gateway/routes.ts";
import { STATION_COMMAND_TYPES } from "../../machines/station/finality.ts";
import { OUTBOX_KINDS } from "../../services/db/outbox.ts";
import { SETTLEMENT_LIMITS } from "../../services/settlement/limits.ts";
import { DEVICES, enrollSandboxDevice, type TestDevice } from "../support/devices.ts";
import { operationsGuide } from "../support/guide.ts";
import { HANGS } from "../support/hangs.ts";
import { send } from "../support/http.ts";
import { STATION_LOG_ALL } from "../support/one-log.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { metricNamesIn, publishedExpressions } from "../support/promql.ts";
import { metricSum, type Series, scrape } from "../support/scrape.ts";
import { startSystem, type TestSystem } from "../support/system.ts";

/** Each name is a service, a part of a service, or the process. */
const POOLS = [
  "audit",
  "audit copier",
  "process",
  "providers",
  "reconciliation",
  "reconciliation work",
  "registry",
  "relay",
  "relay lease",
  "robotics",
  "settlement",
];

/** The statuses of answers without an error, as the metrics name them. */
const STATUSES = ["200", "201", "202", "204", "301", "302", "304", "308", "client_gone"];
const RESULTS = ["accepted", "succeeded", "settled", "delivered", "refused", "failed", "newest", "outdated", "unknown"];
/** The request id of the request that attests. */
const ATTEST_ID = "till-7:attest";
type Process = keyof TestSystem["processes"] | "webhook-signer";

let system: TestSystem;
let cashier: Person;
let companion: TestDevice;
let display: TestDevice;
let station: string;

beforeAll(async () => {
  system = await startSystem({
    environment: { METRICS_PORT: "0", DISK_FOLDER: tmpdir(), DISK_RESERVE_MB: "0" },
    webhookSigner: true,
  });
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  await logIn(system.baseUrl, "backoffice", system.owner);
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  display = await enrollSandboxDevice(system, "customer_display");
  station = `stations/${system.sandbox.stations[0]?.stationId}`;
});
afterAll(() => system.stop());

/** The metrics port of a process, from its log. */
function portOf(name: Process): number {
  const ready = system
    .log(name)
    .split("\n")
    .filter((line) => line.includes('"metricsPort"'))
    .map((line) => JSON.parse(line) as { metricsPort: number });
  return ready.at(-1)?.metricsPort ?? 0;
}
const read = (name: Process): Promise<readonly Series[]> => scrape(portOf(name));

/** Waits until a metric has a value, because some metrics change a moment after the request. */
async function expectSoon(
  name: Process,
  metric: string,
  labels: Readonly<Record<string, string>>,
  value: number,
): Promise<void> {
  await vi.waitFor(async () => expect(metricSum(await read(name), metric, labels), metric).toBe(value), {
    timeout: 15_000,
  });
}

async function collect(): Promise<number> {
  await cashier.good("POST", `${station}/lease/`);
  await companion.good("POST", "heartbeat/", { body: {} });
  await vi.waitFor(async () => {
    const { routes: offered } = await cashier.good<{ routes: { route: string; offered: boolean }[] }>(
      "GET",
      `${station}/routes/`,
    );
    expect(offered.find(({ route }) => route === "smart_pos")?.offered).toBe(true);
  }, HANGS);
  const order_id = await newOrder(cashier, station, "9.50");
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, {
    body: { order_id, route: "smart_pos" },
  });
  await companion.good("GET", "assignment/");
  await companion.good("POST", "assignment/report/", {
    body: {
      intent_id,
      outcome: "reported_success",
      provider_reference: "slip 4711",
      provider_code: "00",
      client_idempotency_key: "the key of this report",
    },
  });
  const headers = { "x-request-id": ATTEST_ID };
  await cashier.good("POST", `${station}/intents/${intent_id}/attest/`, { body: {}, headers });
  return intent_id;
}

describe("metrics after one collection", () => {
  it("the gateway: requests by operation and answer, and the age of its replicas", async () => {
    await collect();
    const gateway = await read("gateway");
    const requests = (operation: string, status: string, code = "none"): number | undefined =>
      metricSum(gateway, "gateway_requests_total", { operation, status, code });
    expect(requests("cashier_attest_intent", "200")).toBe(1);
    expect(requests("payments_device_enroll", "201")).toBe(2);
    expect(requests("payments_device_heartbeat", "200")).toBe(1);
    // The metric exists with the value zero before the first such answer.
    expect(requests("payments_device_heartbeat", "client_gone")).toBe(0);
    expect(requests("none", "405", "method_not_allowed")).toBe(0);
    expect(metricSum(gateway, "gateway_request_duration_seconds_count", { operation: "cashier_attest_intent" })).toBe(
      1,
    );
    // The GET that presents the intent is a request to the station and not a poll.
    expect(requests("payments_device_assignment", "200")).toBe(1);
    expect(metricSum(gateway, "gateway_polls_total", { operation: "payments_device_assignment", answer: "200" })).toBe(
      0,
    );
    for (const replica of ["stations", "credentials", "sessions", "switches"]) {
      expect(metricSum(gateway, "gateway_replica_age_seconds", { replica }), replica).toBeLessThan(1.5);
    }
    expect(metricSum(gateway, "gateway_replica_stations")).toBe(system.sandbox.stations.length);
    expect(metricSum(gateway, "gateway_connections")).toBeGreaterThan(0);
  });

  it("the actor host: commands by type and result", async () => {
    const host = await read("stations");
    const commands = (type: string, result = "accepted"): number | undefined =>
      metricSum(host, "stations_commands_total", { type, result });
    for (const type of ["intent_create", "intent_present", "intent_report", "intent_attest", "settlement_succeeded"]) {
      expect(commands(type), type).toBe(1);
      expect(metricSum(host, "stations_command_duration_seconds_count", { type }), type).toBe(1);
    }
    expect(metricSum(host, "stations_settlements_total", { result: "succeeded" })).toBe(1);
    expect(metricSum(host, "stations_settlement_retries_total")).toBe(0);
    expect(metricSum(host, "stations_append_conflicts_total")).toBe(0);
    expect(metricSum(host, "stations_append_unknown_outcomes_total")).toBe(0);
    expect(metricSum(host, "stations_busy_total", { queue: "station" })).toBe(0);
    expect(metricSum(host, "stations_partitions_owned")).toBe(256);
    expect(metricSum(host, "stations_resident_states")).toBeGreaterThan(0);
    expect(metricSum(host, "stations_lease_age_seconds")).toBeLessThan(1.5);
    expect(metricSum(host, "stations_oldest_settling_age_seconds")).toBe(0);
    // The duration of an attestation includes its settlement, so it is longer than that of the settlement's command.
    const seconds = (type: string): number => metricSum(host, "stations_command_duration_seconds_sum", { type }) ?? 0;
    expect(seconds("intent_attest")).toBeGreaterThan(seconds("settlement_succeeded"));
  });

  it("gateway and actor host: the log lines of the attestation have its request id", async () => {
    const linesOf = (name: Process) =>
      system
        .log(name)
        .split("\n")
        .filter((line) => line.includes(ATTEST_ID))
        .map((line) => JSON.parse(line) as { requestId: string; msg: string });
    await vi.waitFor(() => {
      expect(linesOf("gateway")).toEqual([expect.objectContaining({ msg: "request", requestId: ATTEST_ID })]);
      expect(linesOf("stations")).toEqual([expect.objectContaining({ msg: "settlement ended", requestId: ATTEST_ID })]);
    }, HANGS);
  });

  it("the services: one settlement, all commits copied, all outbox rows delivered", async () => {
    const copied = { log: "STATION_LOG_0" };
    await expectSoon("services", "audit_copy_behind_commits", copied, 0);
    const services = await read("services");
    expect(metricSum(services, "settlement_answers_total", { result: "settled" })).toBe(1);
    expect(metricSum(services, "registry_enrollments_total", { result: "succeeded" })).toBe(2);
    const newest = await system.bus.jsm.streams.getMessage("STATION_LOG_0", { last_by_subj: STATION_LOG_ALL });
    const { state } = await system.bus.jsm.streams.info("STATION_LOG_0", { subjects_filter: STATION_LOG_ALL });
    const commits = Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
    expect(metricSum(services, "audit_copy_position", copied)).toBe(newest?.seq);
    expect(metricSum(services, "audit_copied_commits_total")).toBe(commits);
    expect(metricSum(services, "audit_copy_lag_seconds", copied)).toBe(0);
    expect(metricSum(services, "audit_gaps_total")).toBe(0);
    const pool = { pool: "settlement" };
    expect(metricSum(services, "database_connections", pool)).toBeGreaterThan(0);
    expect(metricSum(services, "database_connections_limit", pool)).toBe(SETTLEMENT_LIMITS.databaseConnections);
    expect(metricSum(services, "database_calls_in_flight", pool)).toBe(0);
    expect(metricSum(services, "database_clock_ahead_seconds")).toBeCloseTo(0, 0);
    const pools = new Set(
      services.filter(({ name }) => name === "database_connections_limit").map(({ labels }) => labels["pool"]),
    );
    expect(pools).toEqual(new Set(POOLS));
    for (const name of POOLS) expect(operationsGuide).toContain(`\`${name}\``);
    expect(metricSum(services, "relay_is_leader")).toBe(1);
    expect(metricSum(services, "relay_outbox_pending_rows")).toBe(0);
    // The metric is zero, and not missing, before the first task is due, so that an alert has a value to compare.
    expect(metricSum(services, "providers_tasks_due")).toBe(0);
    expect(metricSum(services, "providers_tasks_oldest_due_age_seconds")).toBe(0);
    expect(metricSum(services, "providers_oldest_confirmation_age_seconds")).toBe(0);
    const sessions = { kind: "session_put", result: "delivered" };
    expect(metricSum(services, "relay_deliveries_total", sessions)).toBe(2);
    expect(metricSum(services, "relay_deliveries_total", { kind: "credential_put", result: "delivered" })).toBe(2);
  });
});

describe("each process with a metrics port", () => {
  it.each(["gateway", "stations", "services", "webhook-signer"] as const)(
    "%s: it is alive and ready, and its bus is up",
    async (name) => {
      const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${portOf(name)}${path}`);
      expect((await get("/healthz")).status).toBe(200);
      const ready = await get("/readyz");
      expect([ready.status, await ready.text()]).toEqual([200, "ready\n"]);
      const series = await read(name);
      expect(metricSum(series, "bus_up")).toBe(1);
      expect(metricSum(series, "bus_losses_total")).toBe(0);
      expect(metricSum(series, "bus_servers_cut_off")).toBe(0);
      const text = await (await get("/metrics")).text();
      expect(text.split("\n").filter((line) => !/^(#|device_payments_|$)/.test(line))).toEqual([]);
    },
  );
});

describe("metrics of polls", () => {
  it("a poll: counted by its answer, and not as a request", async () => {
    const before = await read("gateway");
    const polls = (series: readonly Series[], answer: string): number =>
      metricSum(series, "gateway_polls_total", { operation: "payments_device_display", answer }) ?? 0;
    const first = await display.call("GET", "display/");
    const etag = first.headers.get("etag") ?? "";
    const answers = [first.status];
    for (let index = 0; index < 14; index += 1) {
      answers.push((await display.call("GET", "display/", { headers: { "if-none-match": etag } })).status);
    }
    await send(system.baseUrl, "GET", `${DEVICES}display/`, { token: "dp_00_unknown" });
    const after = await read("gateway");
    const countOf = (status: number): number => answers.filter((each) => each === status).length;
    expect(countOf(429)).toBeGreaterThan(0);
    expect(polls(after, "200") - polls(before, "200")).toBe(countOf(200));
    expect(polls(after, "304") - polls(before, "304")).toBe(countOf(304));
    expect(polls(after, "throttled")).toBe(countOf(429));
    expect(polls(after, "credential_invalid")).toBe(1);
    expect(metricSum(after, "gateway_throttled_total", { throttle: "credential" })).toBe(countOf(429));
    expect(metricSum(after, "gateway_requests_total", { operation: "payments_device_display" })).toBe(0);
  });
});

describe("metrics of refusals and failures", () => {
  it("a refusal: counted by its code, at the gateway and at the service that decides", async () => {
    const wrong = { email: system.owner.email, password: "not the owner's password" };
    await send(system.baseUrl, "POST", "/api/backoffice/v1/session/", { json: wrong });
    await send(system.baseUrl, "POST", `${DEVICES}enroll/`, { json: { code: "AAAAA-AAAAA" } });
    await send(system.baseUrl, "GET", "/nowhere/");
    await cashier.refused("not_found", "GET", "orders/999999/");
    const [gateway, services] = await Promise.all([read("gateway"), read("services")]);
    const refused = (operation: string, code: string): number | undefined =>
      metricSum(gateway, "gateway_requests_total", { operation, code });
    expect(refused("backoffice_log_in", "login_failed")).toBe(1);
    expect(refused("payments_device_enroll", "enrollment_code_invalid")).toBe(1);
    expect(refused("none", "path_not_found")).toBe(1);
    expect(refused("cashier_get_order", "not_found")).toBe(1);
    // A refusal is an answer of the service, and not a failure of the bus.
    expect(metricSum(gateway, "gateway_bus_failures_total")).toBe(0);
    expect(metricSum(services, "registry_logins_total", { result: "login_failed" })).toBe(1);
    expect(metricSum(services, "registry_logins_total", { result: "succeeded" })).toBe(2);
    expect(metricSum(services, "registry_enrollments_total", { result: "enrollment_code_invalid" })).toBe(1);
  });

  it("a command for a station without an actor host: counted as a failure of the bus", async () => {
    await system.processes.stations.stop();
    // The relay cannot deliver this order to its station, so it repeats the delivery.
    await cashier.good("POST", `${station}/orders/`, { body: { lines: [] } });
    const answer = await cashier.call("POST", `${station}/lease/`);
    expect(answer.status).toBe(503);
    const failure = { operation: "station.command", failure: "no_answer" };
    expect(metricSum(await read("gateway"), "gateway_bus_failures_total", failure)).toBe(1);
    const services = await read("services");
    expect(metricSum(services, "relay_outbox_pending_rows")).toBe(1);
    expect(metricSum(services, "relay_outbox_oldest_age_seconds")).toBeGreaterThan(0);
    const undelivered = { kind: "station_command", result: "failed" };
    expect(metricSum(services, "relay_deliveries_total", undelivered)).toBeGreaterThan(0);
    await system.processes.stations.restart();
    await expectSoon("services", "relay_outbox_pending_rows", {}, 0);
    // The new process has another port and logs it shortly after it is ready. Its counters begin at zero.
    await expectSoon("stations", "stations_partitions_owned", {}, 256);
  });
});

describe("an attestation while settlement does not run", () => {
  it("the actor host reports the age of the attestation until it is recorded", async () => {
    const order_id = await newOrder(cashier, station, "3.00");
    const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, {
      body: { order_id, route: "cash" },
    });
    await system.processes.services.stop();
    const { status } = await cashier.call("POST", `${station}/intents/${intent_id}/attest/`, { body: {} });
    expect([202, 503]).toContain(status);
    const ageSeconds = async () => metricSum(await read("stations"), "stations_oldest_settling_age_seconds") ?? 0;
    await vi.waitFor(async () => expect(await ageSeconds()).toBeGreaterThan(0), HANGS);
    await system.processes.services.restart();
    await expectSoon("stations", "stations_oldest_settling_age_seconds", {}, 0);
  });
});

describe("the published dashboards and alert rules", () => {
  it("each metric in their expressions: one of the processes reports it", async () => {
    const processes = ["gateway", "stations", "services", "webhook-signer"] as const;
    const texts = await Promise.all(
      processes.map(async (name) => (await fetch(`http://127.0.0.1:${portOf(name)}/metrics`)).text()),
    );
    const known = new Set(
      texts
        .flatMap((text) => [...text.matchAll(/^# TYPE (\S+) (\S+)/gm)])
        .flatMap(([, name = "", type]) =>
          type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
        ),
    );
    const missing = publishedExpressions().flatMap(({ where, expression }) =>
      metricNamesIn(expression).flatMap((name) => (known.has(name) || name === "up" ? [] : [`${where}: ${name}`])),
    );
    expect(missing).toEqual([]);
  });
});

describe("labels of metrics", () => {
  it("every value: in a closed list, so no id, no credential, no address", async () => {
    const words: Readonly<Record<string, readonly string[]>> = {
      process: ["gateway", "stations", "registry+settlement+providers+robotics+reconciliation+audit+relay"],
      operation: [...routes.map(({ operationId }) => operationId), "none", "station.command", "heartbeat", "file"],
      status: [...STATUSES, ...Object.values(ERRORS).map(({ status }) => String(status))],
      code: [...ERROR_CODES, "none"],
      answer: ["200", "304", ...ERROR_CODES],
      failure: ["no_answer", "busy", "unavailable"],
      replica: ["stations", "credentials", "sessions", "switches"],
      throttle: ["credential", "address", "consumer", "log_in"],
      bound: ["address", "all", "bytes"],
      lane: ["signed", "unsigned"],
      reason: ["stalled", "connection_full", "all_full"],
      type: [...STATION_COMMAND_TYPES, "liveness"],
      result: [...RESULTS, ...ERROR_CODES],
      queue: ["station", "host"],
      log: ["", "STATION_LOG_0", "KV_LEASES"],
      kind: OUTBOX_KINDS,
      le: ["0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"],
    };
    const all = (await Promise.all((["gateway", "stations", "services"] as const).map(read))).flat();
    const ours = all.filter(({ name }) => /^(gateway|stations|settlement|audit|relay|registry)_/.test(name));
    expect(ours.length).toBeGreaterThan(100);
    const unknown = ours.flatMap(({ name, labels }) =>
      Object.entries(labels)
        .filter(([label, value]) => words[label]?.includes(value) !== true)
        // The operation of a service has a name such as `registry.listDevices`.
        .filter(([label, value]) => label !== "operation" || !/^[a-z]+(\.[A-Za-z-]+)+$/.test(value))
        .map(([label, value]) => `${name}{${label}="${value}"}`),
    );
    expect(unknown).toEqual([]);
    for (const { name } of ours) expect(name).toMatch(/^[a-z_]+$/);
  });
});
