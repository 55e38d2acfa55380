/** Who takes part when callbacks are measured, and what each of them costs. */
import { randomBytes } from "node:crypto";
import { freePort } from "../support/free-port.ts";
import { natsTimeUs } from "./bare-appends.ts";
import type { BenchProcess, Ground } from "./bench-world.ts";
import { cpuTimeUs, familyCpuTimeUs } from "./cpu-time.ts";
import { percentile } from "./percentile.ts";
import { CALLBACK_SECRET } from "./qr-counters.ts";

export interface Parties {
  readonly gateway: BenchProcess;
  readonly services: BenchProcess;
  readonly stations: BenchProcess;
  readonly gatewayPort: number;
  readonly control: BenchProcess;
  readonly controlPort: number;
}

/** The processes of `npm start`, but for the sandbox provider, whose part the bench plays; and the control. */
export async function startParties(ground: Ground): Promise<Parties> {
  const database = { DATABASE_URL: await ground.databaseUrl() };
  const key = randomBytes(32).toString("base64url");
  const names = ["registry", "settlement", "providers", "audit", "relay"];
  const environment = { ...database, PROVIDER_SECRETS_KEY: key };
  const services = await ground.startProcess("services", "services/main.ts", names, environment);
  const stations = await ground.startProcess("stations", "services/main.ts", ["stations"]);
  const gateway = await ground.startProcess("gateway", "gateway/main.ts", [], { HOST: "127.0.0.1", PORT: "0" });
  const controlPort = await freePort();
  const script = "test/bench/load/control-callback-server.ts";
  const control = await ground.startProcess("control", script, [CALLBACK_SECRET, String(controlPort)], database);
  return { services, stations, gateway, gatewayPort: Number(gateway.ready["port"]), control, controlPort };
}

export const CPU_OWNERS = ["gateway", "services", "stations", "nats-server", "PostgreSQL", "control", "load"] as const;
export type CpuTimes = Readonly<Record<(typeof CPU_OWNERS)[number], number>>;

/** CPU time of everybody so far, in microseconds. */
export function cpuTimes(ground: Ground, parties: Parties): CpuTimes {
  const postgresPid = ground.postgresPid();
  return {
    gateway: cpuTimeUs(parties.gateway.pid),
    services: cpuTimeUs(parties.services.pid),
    stations: cpuTimeUs(parties.stations.pid),
    "nats-server": natsTimeUs(ground),
    PostgreSQL: postgresPid === undefined ? 0 : familyCpuTimeUs(postgresPid),
    control: cpuTimeUs(parties.control.pid),
    load: cpuTimeUs(process.pid),
  };
}

/** What each has used since, for each of so many callbacks. */
export function cpuSince(before: CpuTimes, after: CpuTimes, callbacks: number): CpuTimes {
  const each = CPU_OWNERS.map((owner) => [owner, (after[owner] - before[owner]) / callbacks]);
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

/** A callback that was refused was not measured. */
export function requireOk(statuses: Readonly<Record<string, number>>, count: number): void {
  if (statuses["200"] !== count)
    throw new Error(`Of ${count} callbacks, statuses were ${JSON.stringify(statuses)}, which measures nothing.`);
}
