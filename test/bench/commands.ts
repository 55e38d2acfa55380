/**
 * Commands, all durable: create → fetch → report → attest through the actor host and the payment seam, beside bare
 * JetStream compare-and-set appends of commits of the same size on the same server.
 */
import { randomUUID } from "node:crypto";
import type { Caller } from "../../services/bus/messages/caller.ts";
import type { RequestedCommand } from "../../services/bus/messages/station-commands.ts";
import { percentile } from "../support/percentile.ts";
import { appendChain, commitBytes, measureBare, natsTimeUs, withBareStream } from "./bare-appends.ts";
import { benchOwner } from "./bench-owner.ts";
import { type BenchResult, oneDecimal, wholeNumber } from "./bench-result.ts";
import type { BenchProcess, BenchWorld } from "./bench-world.ts";
import {
  APPENDS_PER_COLLECTION,
  ask,
  type BenchStation,
  COMMANDS_PER_COLLECTION,
  collect,
  collectAll,
  makeStations,
  type Timings,
} from "./collections.ts";
import { cpuTimeUs, familyCpuTimeUs } from "./cpu-time.ts";

export interface CommandPlan {
  readonly world: BenchWorld;
  readonly stations: number;
  readonly collectionsPerStation: number;
  /** Collections of one station, one after the other, which measure the round trip of a single command. */
  readonly serialCollections: number;
}

export interface CommandMeasurement {
  readonly bareAppendsPerSecond: number;
  readonly bareSerialP50Us: number;
  readonly commandsPerSecond: number;
  readonly appendsPerSecond: number;
  /** Reports of a device, which need only the actor. */
  readonly reportsPerSecond: number;
  readonly serialP50Us: Readonly<Record<"create" | "fetch" | "report" | "attest", number>>;
  /** The CPU time of each process per command. */
  readonly cpuUsPerCommand: Readonly<Record<CpuUser, number>>;
  readonly natsCpuUsPerBareAppend: number;
  readonly commitBytes: number;
}

const CPU_USERS = ["host", "nats-server", "services", "PostgreSQL", "caller"] as const;
type CpuUser = (typeof CPU_USERS)[number];

/** These collections do not count: they warm up the compiled code and the database's plans. */
const WARM_COLLECTIONS = 10;

export async function measureCommands(plan: CommandPlan): Promise<CommandMeasurement> {
  const { world } = plan;
  const environment = { DATABASE_URL: await world.databaseUrl(), DEVICE_SILENCE_MS: "600000" };
  const services = await world.startProcess(
    "services",
    "services/main.ts",
    ["registry", "settlement", "relay", "audit"],
    environment,
  );
  const host = await world.startProcess("stations", "services/main.ts", ["stations"], environment);
  const caller = await benchOwner(world);
  const ordersEach = plan.collectionsPerStation + WARM_COLLECTIONS + 1;
  const stations = await makeStations(world, caller, {
    stations: plan.stations,
    ordersAt: (index) => (index === 0 ? ordersEach + plan.serialCollections : ordersEach),
  });
  await collectAll(world.bus, caller, stations, 0, WARM_COLLECTIONS);
  const bytes = await commitBytes(world, stations[0]?.stationId ?? 0);
  const bare = await measureBare(
    world,
    plan.stations,
    Math.max(20, plan.collectionsPerStation * APPENDS_PER_COLLECTION),
    bytes,
  );
  const measured = await measureHost(plan, caller, stations, { host, services });
  const serialP50Us = await measureSerial(plan, caller, stations);
  const reportsPerSecond = await measureReports(plan, caller, stations);
  const bareSerialP50Us = await measureBareSerial(world, plan.serialCollections * APPENDS_PER_COLLECTION, bytes);
  await host.stop();
  await services.stop();
  return { ...bare, ...measured, reportsPerSecond, serialP50Us, bareSerialP50Us, commitBytes: bytes };
}

async function measureHost(
  plan: CommandPlan,
  caller: Caller,
  stations: readonly BenchStation[],
  processes: { readonly host: BenchProcess; readonly services: BenchProcess },
): Promise<Pick<CommandMeasurement, "commandsPerSecond" | "appendsPerSecond" | "cpuUsPerCommand">> {
  const before = cpuTimes(plan.world, processes);
  const startedAtMs = performance.now();
  await collectAll(plan.world.bus, caller, stations, WARM_COLLECTIONS, plan.collectionsPerStation);
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const after = cpuTimes(plan.world, processes);
  const collections = stations.length * plan.collectionsPerStation;
  const commands = collections * COMMANDS_PER_COLLECTION;
  const perCommand = (owner: CpuUser): number => (after[owner] - before[owner]) / commands;
  return {
    commandsPerSecond: commands / seconds,
    appendsPerSecond: (collections * APPENDS_PER_COLLECTION) / seconds,
    cpuUsPerCommand: {
      host: perCommand("host"),
      "nats-server": perCommand("nats-server"),
      services: perCommand("services"),
      PostgreSQL: perCommand("PostgreSQL"),
      caller: perCommand("caller"),
    },
  };
}

function cpuTimes(
  world: BenchWorld,
  processes: { readonly host: BenchProcess; readonly services: BenchProcess },
): Record<CpuUser, number> {
  const postgresPid = world.postgresPid();
  return {
    host: cpuTimeUs(processes.host.pid),
    "nats-server": natsTimeUs(world),
    services: cpuTimeUs(processes.services.pid),
    PostgreSQL: postgresPid === undefined ? 0 : familyCpuTimeUs(postgresPid),
    caller: cpuTimeUs(process.pid),
  };
}

/** Every station has one active intent, and its companion reports repeatedly: each report is one command and one append. */
async function measureReports(plan: CommandPlan, caller: Caller, stations: readonly BenchStation[]): Promise<number> {
  const reportsEach = plan.collectionsPerStation * 4;
  const underWay = await Promise.all(
    stations.map(async (station) => {
      const orderId = station.orderIds.at(-1) ?? 0;
      const command: RequestedCommand = { type: "intent_create", route: "smart_pos", orderId };
      const created = await ask(plan.world.bus, caller, station.stationId, `c:${station.stationId}:last`, command);
      return { ...station, intentId: created.intent?.intentId ?? 0 };
    }),
  );
  const startedAtMs = performance.now();
  await Promise.all(
    underWay.map(async ({ stationId, deviceId, intentId }) => {
      for (let n = 0; n < reportsEach; n += 1) {
        const report = { outcome: "reported_unknown", providerReference: "", providerCode: "wait" } as const;
        await ask(plan.world.bus, deviceId, stationId, `report:${randomUUID()}`, {
          type: "intent_report",
          intentId,
          ...report,
        });
      }
    }),
  );
  return (stations.length * reportsEach) / ((performance.now() - startedAtMs) / 1_000);
}

async function measureSerial(
  plan: CommandPlan,
  caller: Caller,
  stations: readonly BenchStation[],
): Promise<CommandMeasurement["serialP50Us"]> {
  const timings: Timings = { create: [], fetch: [], report: [], attest: [] };
  const [station] = stations;
  if (station === undefined) throw new Error("There is no station to measure.");
  const from = WARM_COLLECTIONS + plan.collectionsPerStation;
  for (const orderId of station.orderIds.slice(from, from + plan.serialCollections))
    await collect(plan.world.bus, caller, station, orderId, timings);
  const p50 = (name: keyof Timings): number => percentile(timings[name], 0.5);
  return { create: p50("create"), fetch: p50("fetch"), report: p50("report"), attest: p50("attest") };
}

async function measureBareSerial(world: BenchWorld, appends: number, bytes: number): Promise<number> {
  const body = new Uint8Array(bytes).fill(120);
  return withBareStream(world, async () =>
    percentile(await appendChain(world, "bench.bare.serial", appends, body), 0.5),
  );
}

export function commandResults(measurement: CommandMeasurement): BenchResult[] {
  const appendShare = measurement.appendsPerSecond / measurement.bareAppendsPerSecond;
  const commandShare = measurement.commandsPerSecond / measurement.bareAppendsPerSecond;
  const cpuUs = CPU_USERS.reduce((sum, owner) => sum + measurement.cpuUsPerCommand[owner], 0);
  const rows: BenchResult[] = [
    {
      name: "durable commands per second (bare appends beside)",
      measured: wholeNumber(measurement.commandsPerSecond),
      control: wholeNumber(measurement.bareAppendsPerSecond),
      ratio: `${(commandShare * 100).toFixed(0)} %`,
      goal: "≥ 25 %",
      met: commandShare >= 0.25,
    },
    {
      name: "reports per second: commands that need the actor only",
      measured: wholeNumber(measurement.reportsPerSecond),
      control: wholeNumber(measurement.bareAppendsPerSecond),
      ratio: `${((measurement.reportsPerSecond / measurement.bareAppendsPerSecond) * 100).toFixed(0)} %`,
      goal: "≥ 50 %",
      met: measurement.reportsPerSecond / measurement.bareAppendsPerSecond >= 0.5,
    },
    {
      name: "the host's own appends per second",
      measured: wholeNumber(measurement.appendsPerSecond),
      control: wholeNumber(measurement.bareAppendsPerSecond),
      ratio: `${(appendShare * 100).toFixed(0)} %`,
      goal: "",
      met: undefined,
    },
    {
      name: `CPU per command (µs; commits of ${measurement.commitBytes} bytes)`,
      measured: `${wholeNumber(cpuUs)}: ${CPU_USERS.map((owner) => `${owner} ${wholeNumber(measurement.cpuUsPerCommand[owner])}`).join(", ")}`,
      control: `nats-server ${oneDecimal(measurement.natsCpuUsPerBareAppend)} an append`,
      ratio: "",
      goal: "≤ 480",
      met: cpuUs <= 480,
    },
  ];
  for (const [name, p50Us] of Object.entries(measurement.serialP50Us)) {
    const ratio = p50Us / measurement.bareSerialP50Us;
    rows.push({
      name: `one command, ${name}, p50 (µs)`,
      measured: wholeNumber(p50Us),
      control: wholeNumber(measurement.bareSerialP50Us),
      ratio: `${ratio.toFixed(2)} ×`,
      goal: "≤ 3 ×",
      met: ratio <= 3,
    });
  }
  return rows;
}
