/** The processes that take part when the bench measures callbacks, and the CPU time of each. */
import { randomBytes } from "node:crypto";
import { freePort } from "../support/free-port.ts";
import { percentile } from "../support/percentile.ts";
import { natsTimeUs } from "./bare-appends.ts";
import type { BenchProcess, BenchWorld } from "./bench-world.ts";
import { cpuTimeUs, familyCpuTimeUs } from "./cpu-time.ts";
import { CALLBACK_SECRET } from "./qr-counters.ts";

export interface Parties {
  readonly gateway: BenchProcess;
  readonly services: BenchProcess;
  readonly stations: BenchProcess;
  readonly gatewayPort: number;
  readonly control: BenchProcess;
  readonly controlPort: number;
}

/** Starts the processes of `npm start` and the control. The bench itself acts as the payment provider. */
export async function startParties(world: BenchWorld): Promise<Parties> {
  const database = { DATABASE_URL: await world.databaseUrl() };
  const key = randomBytes(32).toString("base64url");
  const names = ["registry", "settlement", "providers", "audit", "relay"];
  const environment = { ...database, PROVIDER_SECRETS_KEY: key };
  const services = await world.startProcess("services", "services/main.ts", names, environment);
  const stations = await world.startProcess("stations", "services/main.ts", ["stations"]);
  const gateway = await world.startProcess("gateway", "gateway/main.ts", [], { HOST: "127.0.0.1", PORT: "0" });
  const controlPort = await freePort();
  const script = "test/bench/load/control-callback-server.ts";
  const control = await world.startProcess("control", script, [CALLBACK_SECRET, String(controlPort)], database);
  return { services, stations, gateway, gatewayPort: Number(gateway.ready["port"]), control, controlPort };
}

export const CPU_USERS = ["gateway", "services", "stations", "nats-server", "PostgreSQL", "control", "load"] as const;
export type CpuTimes = Readonly<Record<(typeof CPU_USERS)[number], number>>;

/** The CPU time of each process so far, in microseconds. */
export function cpuTimes(world: BenchWorld, parties: Parties): CpuTimes {
  const postgresPid = world.postgresPid();
  return {
    gateway: cpuTimeUs(parties.gateway.pid),
    services: cpuTimeUs(parties.services.pid),
    stations: cpuTimeUs(parties.stations.pid),
    "nats-server": natsTimeUs(world),
    PostgreSQL: postgresPid === undefined ? 0 : familyCpuTimeUs(postgresPid),
    control: cpuTimeUs(parties.control.pid),
    load: cpuTimeUs(process.pid),
  };
}

/** The CPU time of each process per callback, between two readings. */
export function cpuSince(before: CpuTimes, after: CpuTimes, callbacks: number): CpuTimes {
  const each = CPU_USERS.map((user) => [user, (after[user] - before[user]) / callbacks]);
  return Object.fromEntries(each) as CpuTimes;
}

export interface Latency {
  readonly samples: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly maxUs: number;
}

export function latency(samplesUs: number[]): Latency {
  const of = (share: number): number => percentile(samplesUs, share);
  return { samples: samplesUs.length, p50Us: of(0.5), p99Us: of(0.99), maxUs: of(1) };
}

/** Throws when a callback was not answered 200: the bench must not measure errors. */
export function requireAllAnswered200(statuses: Readonly<Record<string, number>>, count: number): void {
  if (statuses["200"] !== count)
    throw new Error(`Not all of ${count} callbacks were answered 200: ${JSON.stringify(statuses)}.`);
}
