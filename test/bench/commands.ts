/**
 * Commands, all durable: create → fetch → report → attest through the actor host and the payment seam, beside bare
 * JetStream compare-and-set appends of commits of the same size on the same server.
 */
import { randomUUID } from "node:crypto";
import { headers } from "nats";
import type { Actor } from "../../machines/actor.ts";
import { partitionOf } from "../../machines/partition.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { registerDevice } from "../../services/bus/messages/devices.ts";
import { listFilials } from "../../services/bus/messages/filials.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import type { RequestedCommand, StationResponse } from "../../services/bus/messages/station-commands.ts";
import { createStation } from "../../services/bus/messages/stations.ts";
import { call } from "../../services/bus/operation.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { heartbeatSubject } from "../../services/bus/subjects.ts";
import { benchOwner } from "./bench-owner.ts";
import type { BenchProcess, Ground } from "./bench-world.ts";
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

interface BenchStation {
  readonly stationId: number;
  readonly deviceId: number;
  readonly orderIds: readonly number[];
}

/** A collection is four commands and five appends: an attestation commits `settling` and then `succeeded`. */
const COMMANDS_PER_COLLECTION = 4;
const APPENDS_PER_COLLECTION = 5;
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
  const stations = await makeStations(plan, caller);
  await collectAll(plan, caller, stations, 0, WARM_COLLECTIONS);
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

async function makeStations(plan: CommandPlan, caller: Caller): Promise<BenchStation[]> {
  const { nc, js } = plan.ground.bus;
  const { filials } = await call(nc, listFilials, { caller });
  const filialId = filials[0]?.filialId ?? 0;
  const ordersEach = plan.collectionsPerStation + plan.serialCollections + WARM_COLLECTIONS + 1;
  return Promise.all(
    Array.from({ length: plan.stations }, async (_, index) => {
      const made = await call(nc, createStation, { caller, filialId, name: `Bench ${index}`, currency: "EUR" }, 60_000);
      const { stationId } = made.station;
      const device = {
        caller,
        stationId,
        name: "Companion",
        kind: "smart_pos_companion" as const,
        handoffTarget: "bench://",
      };
      const { deviceId } = (await call(nc, registerDevice, device, 60_000)).device;
      const actor = { kind: "registry", id: 0 } as const;
      const capabilities = ["handoff_present", "outcome_report"] as const;
      const description = {
        deviceId,
        name: "Companion",
        kind: "smart_pos_companion",
        capabilities,
        status: "active",
        handoffTarget: "bench://",
        revision: 1_000,
      } as const;
      await askStation(nc, stationId, {
        commandId: `bench:activate:${deviceId}`,
        actor,
        command: { type: "device_put", device: description },
      });
      await js.publish(heartbeatSubject(stationId, deviceId), JSON.stringify({ atMs: Date.now(), summary: {} }));
      const orderIds: number[] = [];
      const lines = [{ name: "Soup", quantity: 2, unitAmountMinor: "625" }];
      for (let n = 0; n < (index === 0 ? ordersEach : ordersEach - plan.serialCollections); n += 1) {
        orderIds.push((await call(nc, openOrder, { caller, stationId, lines }, 60_000)).order.orderId);
      }
      await ask(plan, caller, stationId, `bench:lease:${stationId}`, { type: "lease_acquire", lifetimeMs: 3_600_000 });
      return { stationId, deviceId, orderIds };
    }),
  );
}

async function ask(
  plan: CommandPlan,
  who: Caller | number,
  stationId: number,
  commandId: string,
  command: RequestedCommand,
): Promise<StationResponse> {
  const actor: Actor =
    typeof who === "number" ? { kind: "device", id: who } : { kind: "cashier", id: who.userId, name: who.name };
  const response = await askStation(plan.ground.bus.nc, stationId, { commandId, actor, command });
  if (!response.reply.ok) throw new Error(`${command.type} was refused: ${JSON.stringify(response.reply)}`);
  return response;
}

type Timings = Record<"create" | "fetch" | "report" | "attest", number[]>;

async function collect(
  plan: CommandPlan,
  caller: Caller,
  station: BenchStation,
  orderId: number,
  timings?: Timings,
): Promise<void> {
  const { stationId, deviceId } = station;
  const timed = async (name: keyof Timings, work: Promise<StationResponse>): Promise<StationResponse> => {
    const startedAtMs = performance.now();
    const response = await work;
    timings?.[name].push((performance.now() - startedAtMs) * 1_000);
    return response;
  };
  const id = `${stationId}:${orderId}`;
  const created = await timed(
    "create",
    ask(plan, caller, stationId, `c:${id}`, { type: "intent_create", route: "smart_pos", orderId }),
  );
  const intentId = created.intent?.intentId ?? 0;
  await timed("fetch", ask(plan, deviceId, stationId, `p:${id}`, { type: "intent_present", intentId }));
  const report = { outcome: "reported_success", providerReference: `SLIP-${orderId}`, providerCode: "00" } as const;
  await timed("report", ask(plan, deviceId, stationId, `r:${id}`, { type: "intent_report", intentId, ...report }));
  await timed("attest", ask(plan, caller, stationId, `a:${id}`, { type: "intent_attest", intentId }));
}

async function collectAll(
  plan: CommandPlan,
  caller: Caller,
  stations: readonly BenchStation[],
  from: number,
  count: number,
): Promise<void> {
  await Promise.all(
    stations.map(async (station) => {
      for (const orderId of station.orderIds.slice(from, from + count)) await collect(plan, caller, station, orderId);
    }),
  );
}

async function measureHost(
  plan: CommandPlan,
  caller: Caller,
  stations: readonly BenchStation[],
  processes: { readonly host: BenchProcess; readonly services: BenchProcess },
): Promise<Pick<CommandFigures, "commandsPerSecond" | "appendsPerSecond" | "cpuUsPerCommand">> {
  const before = cpuTimes(plan.ground, processes);
  const startedAtMs = performance.now();
  await collectAll(plan, caller, stations, WARM_COLLECTIONS, plan.collectionsPerStation);
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
    "nats-server": cpuTimeUs(ground.natsPid),
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
      const created = await ask(plan, caller, station.stationId, `c:${station.stationId}:last`, command);
      return { ...station, intentId: created.intent?.intentId ?? 0 };
    }),
  );
  const startedAtMs = performance.now();
  await Promise.all(
    underWay.map(async ({ stationId, deviceId, intentId }) => {
      for (let n = 0; n < reportsEach; n += 1) {
        const report = { outcome: "reported_unknown", providerReference: "", providerCode: "wait" } as const;
        await ask(plan, deviceId, stationId, `report:${randomUUID()}`, { type: "intent_report", intentId, ...report });
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
    await collect(plan, caller, station, orderId, timings);
  const p50 = (name: keyof Timings): number => percentile(timings[name], 0.5);
  return { create: p50("create"), fetch: p50("fetch"), report: p50("report"), attest: p50("attest") };
}

/** The size of a commit as it really is after a few collections. */
async function commitBytes(ground: Ground, stationId: number): Promise<number> {
  const subject = `station.log.0.${partitionOf(stationId).toString(16).padStart(2, "0")}.${stationId}`;
  const message = await ground.bus.jsm.streams.getMessage("STATION_LOG_0", { last_by_subj: subject });
  return message?.data.length ?? 0;
}

/** Appends with the expected last sequence of their subject, each chain waiting for its own acknowledgement. */
async function appendChain(ground: Ground, subject: string, count: number, body: Uint8Array): Promise<number[]> {
  const latenciesUs: number[] = [];
  let last = 0;
  for (let i = 0; i < count; i += 1) {
    const startedAtMs = performance.now();
    const expected = headers();
    expected.set("Nats-Expected-Last-Subject-Sequence", String(last));
    const answer = await ground.bus.nc.request(subject, body, { headers: expected, timeout: 5_000 });
    const ack = answer.json<{ seq?: number; error?: unknown }>();
    if (ack.seq === undefined) throw new Error(`A bare append failed: ${JSON.stringify(ack)}`);
    last = ack.seq;
    latenciesUs.push((performance.now() - startedAtMs) * 1_000);
  }
  return latenciesUs;
}

/** Subjects beyond every real station, so that the host and the gateway never read what is no commit. */
async function withBareStream<T>(ground: Ground, work: () => Promise<T>): Promise<T> {
  const name = "BENCH_BARE";
  await ground.bus.jsm.streams.add({ name, subjects: ["bench.bare.*"], max_msgs_per_subject: 64, num_replicas: 1 });
  try {
    return await work();
  } finally {
    await ground.bus.jsm.streams.delete(name);
  }
}

async function measureBare(
  ground: Ground,
  chains: number,
  appendsEach: number,
  bytes: number,
): Promise<Pick<CommandFigures, "bareAppendsPerSecond" | "natsCpuUsPerBareAppend">> {
  return withBareStream(ground, async () => {
    const body = new Uint8Array(bytes).fill(120);
    const natsBefore = cpuTimeUs(ground.natsPid);
    const startedAtMs = performance.now();
    await Promise.all(
      Array.from({ length: chains }, (_, chain) => appendChain(ground, `bench.bare.${chain}`, appendsEach, body)),
    );
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const appends = chains * appendsEach;
    return {
      bareAppendsPerSecond: appends / seconds,
      natsCpuUsPerBareAppend: (cpuTimeUs(ground.natsPid) - natsBefore) / appends,
    };
  });
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
