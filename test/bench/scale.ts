/**
 * Measures how commands scale with 1, 2 and 4 actor hosts. A layout is one NATS server, or three servers with three copies
 * of each stream, and one log or six logs. Each round measures every number of hosts of a layout in turn. After each, the
 * bench measures bare appends of the same size with the same number of copies, for comparison.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { BusLayout } from "../../services/bus/stream-config.ts";
import { StationLogs } from "../../services/bus/streams.ts";
import { commitBytes, measureBare, natsTimeUs } from "./bare-appends.ts";
import { benchOwner } from "./bench-owner.ts";
import { type BenchResult, oneDecimal, wholeNumber } from "./bench-result.ts";
import { type BenchProcess, type BenchWorld, startBenchWorld } from "./bench-world.ts";
import {
  APPENDS_PER_COLLECTION,
  type BenchStation,
  COMMANDS_PER_COLLECTION,
  collectAll,
  makeStations,
} from "./collections.ts";
import { cpuTimeUs, familyCpuTimeUs } from "./cpu-time.ts";

export interface ScalePlan {
  readonly layouts: readonly BusLayout[];
  readonly hosts: readonly number[];
  readonly stations: number;
  readonly collectionsPerStation: number;
  readonly rounds: number;
}

/** The sums of all rounds of one number of hosts on one layout. */
export interface ScaleRow extends BusLayout {
  readonly hosts: number;
  commands: number;
  seconds: number;
  cpuUs: Record<Part, number>;
  bareAppendsPerSecond: number[];
  natsCpuUsPerBareAppend: number[];
}

const PARTS = ["hosts", "nats-servers", "services", "PostgreSQL", "caller"] as const;
type Part = (typeof PARTS)[number];

/** Collections before each measurement that are not counted. They warm up the compiled code. */
const WARM_UP_COLLECTIONS = 3;
/** Longer than the hosts need to divide the partitions after a host has joined or left. */
const DIVIDE_PARTITIONS_MS = 5_000;
const SERVICES = ["registry", "settlement", "relay", "audit"];

export interface Scale {
  readonly natsVersion: string;
  readonly rows: readonly ScaleRow[];
}

export async function measureScale(plan: ScalePlan, print: (line: string) => void): Promise<Scale> {
  const rows: ScaleRow[] = [];
  let natsVersion = "";
  for (const layout of plan.layouts) {
    print(`  ${layout.replicas} copies, ${layout.logs} logs …`);
    const world = await startBenchWorld(print, layout);
    natsVersion = world.natsVersion;
    try {
      rows.push(...(await measureLayout(plan, layout, world)));
    } finally {
      await world.stop();
    }
  }
  return { natsVersion, rows };
}

async function measureLayout(plan: ScalePlan, layout: BusLayout, world: BenchWorld): Promise<ScaleRow[]> {
  const environment = { DATABASE_URL: await world.databaseUrl(), DEVICE_SILENCE_MS: "600000" };
  const services = await world.startProcess("services", "services/main.ts", SERVICES, environment);
  const startHost = (nth: number): Promise<BenchProcess> =>
    world.startProcess(`stations-${nth}`, "services/main.ts", ["stations"], environment);
  const rows = plan.hosts.map((hosts) => newRow(layout, hosts));
  const first = await startHost(0);
  const caller = await benchOwner(world);
  const each = WARM_UP_COLLECTIONS + plan.collectionsPerStation;
  const ordersEach = each * plan.hosts.length * plan.rounds;
  const stations = await makeStations(world, caller, { stations: plan.stations, ordersAt: () => ordersEach });
  const logs = new StationLogs(layout.logs);
  let from = 0;
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const row of rows) {
      const more = await Promise.all(Array.from({ length: row.hosts - 1 }, (_, nth) => startHost(nth + 1)));
      await delay(DIVIDE_PARTITIONS_MS);
      await collectAll(world.bus, caller, stations, from, WARM_UP_COLLECTIONS);
      const collect = () =>
        collectAll(world.bus, caller, stations, from + WARM_UP_COLLECTIONS, plan.collectionsPerStation);
      await measureOnce({ world, row, stations, plan, collect, hosts: [first, ...more], services });
      from += each;
      const bytes = await commitBytes({ bus: world.bus, logs }, stations[0]?.stationId ?? 0);
      const appends = plan.collectionsPerStation * APPENDS_PER_COLLECTION;
      const bare = await measureBare(world, plan.stations, appends, bytes, layout.replicas);
      row.bareAppendsPerSecond.push(bare.bareAppendsPerSecond);
      row.natsCpuUsPerBareAppend.push(bare.natsCpuUsPerBareAppend);
      await Promise.all(more.map((host) => host.stop()));
    }
  }
  await first.stop();
  await services.stop();
  return rows;
}

interface Measured {
  readonly world: BenchWorld;
  readonly row: ScaleRow;
  readonly stations: readonly BenchStation[];
  readonly plan: ScalePlan;
  readonly collect: () => Promise<void>;
  readonly hosts: readonly BenchProcess[];
  readonly services: BenchProcess;
}

async function measureOnce({ world, row, stations, plan, collect, hosts, services }: Measured): Promise<void> {
  const times = (): Record<Part, number> => ({
    hosts: hosts.reduce((sum, { pid }) => sum + cpuTimeUs(pid), 0),
    "nats-servers": natsTimeUs(world),
    services: cpuTimeUs(services.pid),
    PostgreSQL: familyCpuTimeUs(world.postgresPid() ?? process.pid),
    caller: cpuTimeUs(process.pid),
  });
  const before = times();
  const startedAtMs = performance.now();
  await collect();
  row.seconds += (performance.now() - startedAtMs) / 1_000;
  const after = times();
  for (const part of PARTS) row.cpuUs[part] += after[part] - before[part];
  row.commands += stations.length * plan.collectionsPerStation * COMMANDS_PER_COLLECTION;
}

function newRow(layout: BusLayout, hosts: number): ScaleRow {
  const cpuUs = { hosts: 0, "nats-servers": 0, services: 0, PostgreSQL: 0, caller: 0 };
  const sums = { commands: 0, seconds: 0, cpuUs, bareAppendsPerSecond: [], natsCpuUsPerBareAppend: [] };
  return { ...layout, hosts, ...sums };
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

export function scaleResults(rows: readonly ScaleRow[]): BenchResult[] {
  return rows.map((row) => {
    const { hosts, replicas, logs, commands, seconds, cpuUs } = row;
    const perCommand = (part: Part): number => cpuUs[part] / commands;
    const sum = PARTS.reduce((all, part) => all + perCommand(part), 0);
    const bare = mean(row.bareAppendsPerSecond);
    const parts = PARTS.map((part) => `${part} ${wholeNumber(perCommand(part))}`).join(", ");
    return {
      name: `${hosts} ${hosts === 1 ? "host" : "hosts"}, R${replicas}, ${logs} ${logs === 1 ? "log" : "logs"}`,
      measured: `${wholeNumber(commands / seconds)} commands/s; ${wholeNumber(sum)} µs of CPU: ${parts}`,
      control: `${wholeNumber(bare)} appends/s; nats-servers ${oneDecimal(mean(row.natsCpuUsPerBareAppend))} µs`,
      ratio: `${((commands / seconds / bare) * 100).toFixed(0)} %`,
      goal: "",
      met: undefined,
    };
  });
}
