/** How the cost of a poll, the memory and the start of a gateway grow with the number of credentials and stations. */
import { setTimeout as delay } from "node:timers/promises";
import type { Ground } from "./bench-world.ts";
import { residentBytes } from "./cpu-time.ts";
import { type Figure, oneDecimal } from "./figure.ts";
import { startLoadedGateway } from "./loaded-gateway.ts";
import { learnEtags, measureRound, medianRound, mixedRequests, type PollRound } from "./polls.ts";
import { type PopulatedDevice, populate } from "./population.ts";

export interface CurvePoint {
  readonly credentials: number;
  readonly poll: PollRound;
  readonly loadMs: number;
  readonly residentBytes: number;
}

/** Devices that poll at each size; the same number, so that only the size of what is known differs. */
const POLLING = 1_000;
/** Polls of each device a round: nine of the burst of ten; the pause between rounds fills the bucket again. */
const POLLS_EACH = 8;
const REFILL_MS = 9_000;
const ROUNDS = 3;

export async function measureCurve(
  ground: Ground,
  sizes: readonly number[],
  say: (line: string) => void,
): Promise<CurvePoint[]> {
  const points: CurvePoint[] = [];
  const devices: PopulatedDevice[] = [];
  for (const size of sizes) {
    for (const device of await populate(ground.bus, devices.length + 1, size - devices.length)) devices.push(device);
    const gateway = await startLoadedGateway(ground, devices);
    const polling = spread(devices, POLLING);
    const etags = await learnEtags(gateway.port, polling);
    const rounds: PollRound[] = [];
    // The first rounds warm the compiled code and are thrown away.
    for (let round = -2; round < ROUNDS; round += 1) {
      await delay(REFILL_MS);
      const measured = await measureRound(
        gateway.port,
        gateway.pid,
        mixedRequests(polling, etags, POLLING * POLLS_EACH),
      );
      if (round >= 0) rounds.push(measured);
    }
    const point = {
      credentials: size,
      poll: medianRound(rounds),
      loadMs: gateway.loadMs,
      residentBytes: residentBytes(gateway.pid),
    };
    say(
      `${size} credentials: ${oneDecimal(point.poll.cpuUsPerRequest)} µs a poll, loaded in ${Math.round(point.loadMs)} ms`,
    );
    points.push(point);
    await gateway.stop();
  }
  return points;
}

/** Devices at equal distances over the whole population, so that no part of the tables stays unread. */
function spread(devices: readonly PopulatedDevice[], count: number): PopulatedDevice[] {
  const distance = devices.length / count;
  return Array.from({ length: count }, (_, index) => devices[Math.floor(index * distance)]).filter(
    (device) => device !== undefined,
  );
}

export function curveFigures(points: readonly CurvePoint[]): Figure[] {
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
