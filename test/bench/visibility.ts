/** Commit → visible at every gateway: from the moment of publishing a commit until two replicas hold it. */

import { setTimeout as delay } from "node:timers/promises";
import { stationLogSubject } from "../support/one-log.ts";
import { percentile } from "../support/percentile.ts";
import { type BenchResult, wholeNumber } from "./bench-result.ts";
import type { BenchWorld } from "./bench-world.ts";
import { clockMs } from "./load/clock.ts";
import { commitOfStation } from "./population.ts";

export interface VisibilityMeasurement {
  readonly commits: number;
  readonly commitsPerSecond: number;
  /** The time until the slower replica has the commit: from before it is published, and from its acknowledgement. */
  readonly fromPublishP50Us: number;
  readonly fromPublishP99Us: number;
  readonly fromAckP99Us: number;
  readonly ackP50Us: number;
  readonly ackP99Us: number;
}

const REPLICAS = 2;
/** The bench publishes this many commits together: the load of a thousand stations at their busiest. */
const BATCH = 4;
const PAUSE_MS = 2;
const STATIONS = 200;
const SETTLE_MS = 500;

export async function measureVisibility(world: BenchWorld, plan: { commits: number }): Promise<VisibilityMeasurement> {
  const probes = await Promise.all(
    Array.from({ length: REPLICAS }, (_, index) =>
      world.startProcess(`probe-${index}`, "test/bench/load/replica-probe.ts", []),
    ),
  );
  const published = new Map<number, { sentAtMs: number; ackedAtMs: number }>();
  const startedAtMs = clockMs();
  for (let sent = 0; sent < plan.commits; sent += BATCH) {
    await Promise.all(
      Array.from({ length: BATCH }, async (_, index) => {
        const stationId = 1 + ((sent + index) % STATIONS);
        const body = commitOfStation(stationId);
        const sentAtMs = clockMs();
        const ack = await world.bus.js.publish(stationLogSubject(stationId), body);
        published.set(ack.seq, { sentAtMs, ackedAtMs: clockMs() });
      }),
    );
    await delay(PAUSE_MS);
  }
  const commitsPerSecond = (plan.commits / (clockMs() - startedAtMs)) * 1_000;
  await delay(SETTLE_MS);
  const visibleAtMs = new Map<number, number>();
  for (const probe of probes) {
    for (const [, sequence, atMs] of await probe
      .ask<{ seen: [number, number, number][] }>()
      .then((answer) => answer.seen)) {
      visibleAtMs.set(sequence, Math.max(atMs, visibleAtMs.get(sequence) ?? 0));
    }
    await probe.stop();
  }
  const fromPublishUs: number[] = [];
  const fromAckUs: number[] = [];
  const ackUs: number[] = [];
  for (const [sequence, { sentAtMs, ackedAtMs }] of published) {
    const atMs = visibleAtMs.get(sequence);
    if (atMs === undefined) throw new Error(`Commit ${sequence} never became visible.`);
    fromPublishUs.push((atMs - sentAtMs) * 1_000);
    fromAckUs.push((atMs - ackedAtMs) * 1_000);
    ackUs.push((ackedAtMs - sentAtMs) * 1_000);
  }
  return {
    commits: published.size,
    commitsPerSecond,
    fromPublishP50Us: percentile(fromPublishUs, 0.5),
    fromPublishP99Us: percentile(fromPublishUs, 0.99),
    fromAckP99Us: percentile(fromAckUs, 0.99),
    ackP50Us: percentile(ackUs, 0.5),
    ackP99Us: percentile(ackUs, 0.99),
  };
}

export function visibilityResults(measurement: VisibilityMeasurement): BenchResult[] {
  return [
    {
      name: `commit → visible at both of ${REPLICAS} replicas, p99 (µs; ${wholeNumber(measurement.commitsPerSecond)} commits/s)`,
      measured: wholeNumber(measurement.fromPublishP99Us),
      control: `acknowledged: ${wholeNumber(measurement.ackP99Us)}`,
      ratio: "",
      goal: "≤ 5,000",
      met: measurement.fromPublishP99Us <= 5_000,
    },
    {
      name: "commit → visible, p50 (µs)",
      measured: wholeNumber(measurement.fromPublishP50Us),
      control: `acknowledged: ${wholeNumber(measurement.ackP50Us)}`,
      ratio: "",
      goal: "",
      met: undefined,
    },
    {
      name: "acknowledged → visible, p99 (µs)",
      measured: wholeNumber(measurement.fromAckP99Us),
      control: "",
      ratio: "",
      goal: "",
      met: undefined,
    },
  ];
}
