/**
 * Commands, all durable: create → fetch → report → attest through the actor host and the payment seam, beside bare
 * JetStream compare-and-set appends of commits of the same size on the same server.
 */
import { randomUUID } from "node:crypto";
import type { Caller } from "../../services/bus/messages/caller.ts";
import type { RequestedCommand } from "../../services/bus/messages/station-commands.ts";
import { appendChain, commitBytes, measureBare, natsTimeUs, withBareStream } from "./bare-appends.ts";
import { benchOwner } from "./bench-owner.ts";
import type { BenchProcess, Ground } from "./bench-world.ts";
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
import { type Figure, oneDecimal, wholeNumber } from "./figure.ts";
import { percentile } from "./percentile.ts";

export interface CommandPlan {
  readonly ground: Ground;
  readonly stations: number;
  readonly collectionsPerStation: number;
  /** One after the other on one station, for the round trip of a single command. */
  readonly serialCollections: number;
}

export interface CommandFigures {
  readonly bareAppendsPerSecond: number;
  readonly bareSerialP50Us: number;
  readonly commandsPerSecond: number;
  readonly appendsPerSecond: number;
  /** Commands that need nothing but the actor: a device's reports. */
  readonly reportsPerSecond: number;
  readonly serialP50Us: Readonly<Record<"create" | "fetch" | "report" | "attest", number>>;
  /** Where the time goes: CPU of each process per command. */
  readonly cpuUsPerCommand: Readonly<Record<CpuOwner, number>>;
  readonly natsCpuUsPerBareAppend: number;
  readonly commitBytes: number;
}

const CPU_OWNERS = ["host", "nats-server", "services", "PostgreSQL", "caller"] as const;
type CpuOwner = (typeof CPU_OWNERS)[number];

/** Thrown away: they warm the compiled code and the database's plans. */
const WARM_COLLECTIONS = 10;

export async function measureCommands(plan: CommandPlan): Promise<CommandFigures> {
  const { ground } = plan;
  const environment = { DATABASE_URL: await ground.databaseUrl(), DEVICE_SILENCE_MS: "600000" };
  const services = await ground.startProcess(
    "services",
    "services/main.ts",
    ["registry", "settlement", "relay", "audit"],
    environment,
  );
  const host = await ground.startProcess("stations", "services/main.ts", ["stations"], environment);
  const caller = await benchOwner(ground);
  const ordersEach = plan.collectionsPerStation + WARM_COLLECTIONS + 1;
  const stations = await makeStations(ground, caller, {
    stations: plan.stations,
    ordersAt: (index) => (index === 0 ? ordersEach + plan.serialCollections : ordersEach),
  });
  await collectAll(ground.bus, caller, stations, 0, WARM_COLLECTIONS);
  const bytes = await commitBytes(ground, stations[0]?.stationId ?? 0);
  const bare = await measureBare(
    ground,
    plan.stations,
    Math.max(20, plan.collectionsPerStation * APPENDS_PER_COLLECTION),
    bytes,
  );
  const measured = await measureHost(plan, caller, stations, { host, services });
  const serialP50Us = await measureSerial(plan, caller, stations);
  const reportsPerSecond = await measureReports(plan, caller, stations);
  const bareSerialP50Us = await measureBareSerial(ground, plan.serialCollections * APPENDS_PER_COLLECTION, bytes);
  await host.stop();
  await services.stop();
  return { ...bare, ...measured, reportsPerSecond, serialP50Us, bareSerialP50Us, commitBytes: bytes };
}

async function measureHost(
  plan: CommandPlan,
  caller: Caller,
  stations: readonly BenchStation[],
  processes: { readonly host: BenchProcess; readonly services: BenchProcess },
): Promise<Pick<CommandFigures, "commandsPerSecond" | "appendsPerSecond" | "cpuUsPerCommand">> {
  const before = cpuTimes(plan.ground, processes);
  const startedAtMs = performance.now();
  await collectAll(plan.ground.bus, caller, stations, WARM_COLLECTIONS, plan.collectionsPerStation);
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const after = cpuTimes(plan.ground, processes);
  const collections = stations.length * plan.collectionsPerStation;
  const commands = collections * COMMANDS_PER_COLLECTION;
  const perCommand = (owner: CpuOwner): number => (after[owner] - before[owner]) / commands;
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
  ground: Ground,
  processes: { readonly host: BenchProcess; readonly services: BenchProcess },
): Record<CpuOwner, number> {
  const postgresPid = ground.postgresPid();
  return {
    host: cpuTimeUs(processes.host.pid),
    "nats-server": natsTimeUs(ground),
    services: cpuTimeUs(processes.services.pid),
    PostgreSQL: postgresPid === undefined ? 0 : familyCpuTimeUs(postgresPid),
    caller: cpuTimeUs(process.pid),
  };
}

/** Every station has one intent under way, and its companion reports on and on: one command, one append each. */
async function measureReports(plan: CommandPlan, caller: Caller, stations: readonly BenchStation[]): Promise<number> {
  const reportsEach = plan.collectionsPerStation * 4;
  const underWay = await Promise.all(
    stations.map(async (station) => {
      const orderId = station.orderIds.at(-1) ?? 0;
      const command: RequestedCommand = { type: "intent_create", route: "smart_pos", orderId };
      const created = await ask(plan.ground.bus, caller, station.stationId, `c:${station.stationId}:last`, command);
      return { ...station, intentId: created.intent?.intentId ?? 0 };
    }),
  );
  const startedAtMs = performance.now();
  await Promise.all(
    underWay.map(async ({ stationId, deviceId, intentId }) => {
      for (let n = 0; n < reportsEach; n += 1) {
        const report = { outcome: "reported_unknown", providerReference: "", providerCode: "wait" } as const;
        await ask(plan.ground.bus, deviceId, stationId, `report:${randomUUID()}`, {
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
): Promise<CommandFigures["serialP50Us"]> {
  const timings: Timings = { create: [], fetch: [], report: [], attest: [] };
  const [station] = stations;
  if (station === undefined) throw new Error("There is no station to measure.");
  const from = WARM_COLLECTIONS + plan.collectionsPerStation;
  for (const orderId of station.orderIds.slice(from, from + plan.serialCollections))
    await collect(plan.ground.bus, caller, station, orderId, timings);
  const p50 = (name: keyof Timings): number => percentile(timings[name], 0.5);
  return { create: p50("create"), fetch: p50("fetch"), report: p50("report"), attest: p50("attest") };
}

async function measureBareSerial(ground: Ground, appends: number, bytes: number): Promise<number> {
  const body = new Uint8Array(bytes).fill(120);
  return withBareStream(ground, async () =>
    percentile(await appendChain(ground, "bench.bare.serial", appends, body), 0.5),
  );
}

export function commandFigures(figures: CommandFigures): Figure[] {
  const appendShare = figures.appendsPerSecond / figures.bareAppendsPerSecond;
  const commandShare = figures.commandsPerSecond / figures.bareAppendsPerSecond;
  const rows: Figure[] = [
    {
      name: "durable commands per second (bare appends beside)",
      measured: wholeNumber(figures.commandsPerSecond),
      control: wholeNumber(figures.bareAppendsPerSecond),
      ratio: `${(commandShare * 100).toFixed(0)} %`,
      goal: "≥ 50 %",
      met: commandShare >= 0.5,
    },
    {
      name: "reports per second: commands that need the actor only",
      measured: wholeNumber(figures.reportsPerSecond),
      control: wholeNumber(figures.bareAppendsPerSecond),
      ratio: `${((figures.reportsPerSecond / figures.bareAppendsPerSecond) * 100).toFixed(0)} %`,
      goal: "≥ 50 %",
      met: figures.reportsPerSecond / figures.bareAppendsPerSecond >= 0.5,
    },
    {
      name: "the host's own appends per second",
      measured: wholeNumber(figures.appendsPerSecond),
      control: wholeNumber(figures.bareAppendsPerSecond),
      ratio: `${(appendShare * 100).toFixed(0)} %`,
      goal: "",
      met: undefined,
    },
    {
      name: `CPU per command (µs; commits of ${figures.commitBytes} bytes)`,
      measured: CPU_OWNERS.map((owner) => `${owner} ${wholeNumber(figures.cpuUsPerCommand[owner])}`).join(", "),
      control: `nats-server ${oneDecimal(figures.natsCpuUsPerBareAppend)} an append`,
      ratio: "",
      goal: "",
      met: undefined,
    },
  ];
  for (const [name, p50Us] of Object.entries(figures.serialP50Us)) {
    const ratio = p50Us / figures.bareSerialP50Us;
    rows.push({
      name: `one command, ${name}, p50 (µs)`,
      measured: wholeNumber(p50Us),
      control: wholeNumber(figures.bareSerialP50Us),
      ratio: `${ratio.toFixed(2)} ×`,
      goal: "≤ 3 ×",
      met: ratio <= 3,
    });
  }
  return rows;
}
