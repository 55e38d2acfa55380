/** The CPU time of a system without any work, and of its processes until they are ready. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../support/free-port.ts";
import { natsTimeUs } from "./bare-appends.ts";
import { type BenchResult, oneDecimal, wholeNumber } from "./bench-result.ts";
import type { BenchProcess, BenchWorld } from "./bench-world.ts";
import { cpuTimeUs, familyCpuTimeUs } from "./cpu-time.ts";

export interface IdlePlan {
  /** The pause after the start of the last process: the engine compiles frequently used code for a minute or two. */
  readonly calmMs: number;
  readonly measuredMs: number;
}

export interface IdleMeasurement {
  /** The CPU time of each process, in milliseconds. */
  readonly untilReady: Readonly<Record<string, number>>;
  readonly eachSecond: Readonly<Record<string, number>>;
}

const SERVICES = ["registry", "settlement", "providers", "robotics", "reconciliation", "audit", "relay"];

export async function measureIdle(world: BenchWorld, { calmMs, measuredMs }: IdlePlan): Promise<IdleMeasurement> {
  const processes = await startAll(world);
  const untilReady = Object.fromEntries(processes.map(([name, { pid }]) => [name, cpuTimeUs(pid) / 1_000]));
  await delay(calmMs);
  const before = cpuTimes(world, processes);
  await delay(measuredMs);
  const after = cpuTimes(world, processes);
  for (const [, process] of processes.toReversed()) await process.stop();
  const each = Object.entries(after).map(([name, us]) => [name, (us - (before[name] ?? 0)) / measuredMs]);
  return { untilReady, eachSecond: Object.fromEntries(each) as Record<string, number> };
}

type Named = readonly [name: string, process: BenchProcess];

/** Starts the processes of `npm start`, one after the other, so that no process waits for another one. */
async function startAll(world: BenchWorld): Promise<readonly Named[]> {
  const key = (): string => randomBytes(32).toString("base64url");
  const sandboxPort = String(await freePort());
  const environment = {
    DATABASE_URL: await world.databaseUrl(),
    PROVIDER_SECRETS_KEY: key(),
    WEBHOOK_SECRETS_KEY: key(),
    SANDBOX_PROVIDER_KEY: key(),
    SANDBOX_PROVIDER_INSTALLATION_KEY: key(),
    SANDBOX_PROVIDER_URL: `http://127.0.0.1:${sandboxPort}`,
    SANDBOX_PROVIDER_PORT: sandboxPort,
  };
  const ofServices = async (name: string, services: readonly string[]): Promise<Named> => {
    return [name, await world.startProcess(name, "services/main.ts", [...services], environment)];
  };
  return [
    await ofServices("services", SERVICES),
    await ofServices("webhook signer", ["webhook-signer"]),
    await ofServices("sandbox provider", ["sandbox-provider"]),
    await ofServices("stations", ["stations"]),
    ["gateway", await world.startProcess("gateway", "gateway/main.ts", [], { HOST: "127.0.0.1", PORT: "0" })],
  ];
}

function cpuTimes(world: BenchWorld, processes: readonly Named[]): Readonly<Record<string, number>> {
  return {
    ...Object.fromEntries(processes.map(([name, { pid }]) => [name, cpuTimeUs(pid)])),
    "nats-server": natsTimeUs(world),
    PostgreSQL: familyCpuTimeUs(world.postgresPid() ?? 0),
  };
}

export function idleResults({ untilReady, eachSecond }: IdleMeasurement): BenchResult[] {
  const row = (name: string, measured: string): BenchResult => {
    return { name, measured, control: "", ratio: "", goal: "", met: undefined };
  };
  const sum = (times: Readonly<Record<string, number>>): number =>
    Object.values(times).reduce((all, ms) => all + ms, 0);
  const rows = (what: string, times: Readonly<Record<string, number>>, digits: (ms: number) => string): BenchResult[] =>
    Object.entries({ ...times, "all together": sum(times) }).map(([name, ms]) => row(`${what}: ${name}`, digits(ms)));
  return [
    ...rows("idle, CPU ms each second", eachSecond, oneDecimal),
    ...rows("until ready, CPU ms", untilReady, wholeNumber),
  ];
}
