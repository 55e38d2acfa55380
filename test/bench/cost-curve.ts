/** How the CPU time of a poll, the memory and the start time of a gateway grow with the number of credentials and stations. */
import { setTimeout as delay } from "node:timers/promises";
import { type BenchResult, oneDecimal } from "./bench-result.ts";
import type { BenchWorld } from "./bench-world.ts";
import { residentBytes } from "./cpu-time.ts";
import { startLoadedGateway } from "./loaded-gateway.ts";
import { learnEtags, measureRound, medianRound, mixedRequests, type PollRound } from "./polls.ts";
import { type PopulatedDevice, populate } from "./population.ts";

export interface CurvePoint {
  readonly credentials: number;
  readonly poll: PollRound;
  readonly loadMs: number;
  readonly residentBytes: number;
}

/** The number of devices that poll. It is the same at each size, so that only the size of the replica differs. */
const POLLING_DEVICES = 1_000;
/** Polls of each device per round, within the throttle's burst of ten. */
const POLLS_EACH = 8;
/** The pause between rounds: the throttle gives each device its burst again, one request a second. */
const REFILL_MS = 9_000;
const ROUNDS = 3;

export async function measureCurve(
  world: BenchWorld,
  sizes: readonly number[],
  print: (line: string) => void,
): Promise<CurvePoint[]> {
  const points: CurvePoint[] = [];
  const devices: PopulatedDevice[] = [];
  for (const size of sizes) {
    for (const device of await populate(world.bus, devices.length + 1, size - devices.length)) devices.push(device);
    const gateway = await startLoadedGateway(world, devices);
    const polling = spread(devices, POLLING_DEVICES);
    const etags = await learnEtags(gateway.port, polling);
    const rounds: PollRound[] = [];
    // Two rounds more let the engine compile the code; the bench drops their results.
    for (let round = -2; round < ROUNDS; round += 1) {
      await delay(REFILL_MS);
      const measured = await measureRound(
        gateway.port,
        gateway.pid,
        mixedRequests(polling, etags, POLLING_DEVICES * POLLS_EACH),
      );
      if (round >= 0) rounds.push(measured);
    }
    const point = {
      credentials: size,
      poll: medianRound(rounds),
      loadMs: gateway.loadMs,
      residentBytes: residentBytes(gateway.pid),
    };
    print(
      `${size} credentials: ${oneDecimal(point.poll.cpuUsPerRequest)} µs a poll, loaded in ${Math.round(point.loadMs)} ms`,
    );
    points.push(point);
    await gateway.stop();
  }
  return points;
}

/** Picks devices at equal distances from the whole population, so that the polls read all parts of the tables. */
function spread(devices: readonly PopulatedDevice[], count: number): PopulatedDevice[] {
  const distance = devices.length / count;
  return Array.from({ length: count }, (_, index) => devices[Math.floor(index * distance)]).filter(
    (device) => device !== undefined,
  );
}

export function curveResults(points: readonly CurvePoint[]): BenchResult[] {
  const base = points[0]?.poll.cpuUsPerRequest ?? Number.NaN;
  return points.map((point) => {
    const ratio = point.poll.cpuUsPerRequest / base;
    return {
      name: `poll with ${point.credentials.toLocaleString("en")} credentials and stations, CPU (µs)`,
      measured: oneDecimal(point.poll.cpuUsPerRequest),
      control: `${oneDecimal(base)} at 1,000; loaded in ${(point.loadMs / 1_000).toFixed(1)} s, ${Math.round(point.residentBytes / 2 ** 20)} MiB`,
      ratio: `${ratio.toFixed(2)} ×`,
      goal: "within 20 %",
      met: ratio <= 1.2,
    };
  });
}
