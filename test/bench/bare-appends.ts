/** The control of the command bench: bare JetStream compare-and-set appends of the same size on the same servers. */
import { headers } from "nats";
import type { BenchWorld } from "./bench-world.ts";
import { cpuTimeUs } from "./cpu-time.ts";

/** The CPU time of all NATS servers so far. */
export const natsTimeUs = ({ natsPids }: Pick<BenchWorld, "natsPids">): number =>
  natsPids.reduce((sum, pid) => sum + cpuTimeUs(pid), 0);

/** The real size of a commit after a few collections. */
export async function commitBytes({ bus, logs }: Pick<BenchWorld, "bus" | "logs">, stationId: number): Promise<number> {
  const { name } = logs.of(stationId);
  const message = await bus.jsm.streams.getMessage(name, { last_by_subj: logs.subject(stationId) });
  return message?.data.length ?? 0;
}

/** Appends messages, each with the expected last sequence of the subject and after the acknowledgement of the previous one. */
export async function appendChain(
  world: Pick<BenchWorld, "bus">,
  subject: string,
  count: number,
  body: Uint8Array,
): Promise<number[]> {
  const latenciesUs: number[] = [];
  let last = 0;
  for (let i = 0; i < count; i += 1) {
    const startedAtMs = performance.now();
    const expected = headers();
    expected.set("Nats-Expected-Last-Subject-Sequence", String(last));
    const answer = await world.bus.nc.request(subject, body, { headers: expected, timeout: 5_000 });
    const ack = answer.json<{ seq?: number; error?: unknown }>();
    if (ack.seq === undefined) throw new Error(`A bare append failed: ${JSON.stringify(ack)}`);
    last = ack.seq;
    latenciesUs.push((performance.now() - startedAtMs) * 1_000);
  }
  return latenciesUs;
}

/** Runs `work` with a separate stream, because these messages are not commits and no host or gateway may read them. */
export async function withBareStream<T>(
  world: Pick<BenchWorld, "bus">,
  work: () => Promise<T>,
  replicas = 1,
): Promise<T> {
  const name = "BENCH_BARE";
  await world.bus.jsm.streams.add({
    name,
    subjects: ["bench.bare.*"],
    max_msgs_per_subject: 64,
    num_replicas: replicas,
  });
  try {
    return await work();
  } finally {
    await world.bus.jsm.streams.delete(name);
  }
}

/** Measures this many chains side by side. Each chain is like the commits of one station. */
export async function measureBare(
  world: BenchWorld,
  chains: number,
  appendsEach: number,
  bytes: number,
  replicas = 1,
): Promise<{ readonly bareAppendsPerSecond: number; readonly natsCpuUsPerBareAppend: number }> {
  return withBareStream(
    world,
    async () => {
      const body = new Uint8Array(bytes).fill(120);
      const natsBefore = natsTimeUs(world);
      const startedAtMs = performance.now();
      await Promise.all(
        Array.from({ length: chains }, (_, chain) => appendChain(world, `bench.bare.${chain}`, appendsEach, body)),
      );
      const seconds = (performance.now() - startedAtMs) / 1_000;
      const appends = chains * appendsEach;
      return {
        bareAppendsPerSecond: appends / seconds,
        natsCpuUsPerBareAppend: (natsTimeUs(world) - natsBefore) / appends,
      };
    },
    replicas,
  );
}
