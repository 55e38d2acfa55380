/**
 * Collections on three NATS servers while servers and processes fail, in its short form. The long form is
 * `npm run chaos`.
 *
 *   CLUSTER_SEED=42 CLUSTER_FAULTS=20 npx vitest run test/cluster/trial.test.ts
 */
import { expect, test } from "vitest";
import { runTrial } from "./trial.ts";

const FAULTS = Number(process.env.CLUSTER_FAULTS ?? "2");
const SEED = Number(process.env.CLUSTER_SEED ?? "20261122");
const STATIONS = Number(process.env.CLUSTER_STATIONS ?? "4");

test(
  `${FAULTS} faults (CLUSTER_SEED=${SEED}): nothing is lost, doubled, stuck, wrong or stale`,
  async () => {
    const print = (line: string): void => void process.stderr.write(`${line}\n`);
    const { lost, doubled, stuck, stale, history } = await runTrial({
      seed: SEED,
      faults: FAULTS,
      stations: STATIONS,
      print,
    });
    print(`${history.ended.length} collections; later: ${JSON.stringify(Object.fromEntries(history.later))}`);
    expect({ lost, doubled, stuck, stale, wrong: history.wrongErrors }).toEqual({
      lost: [],
      doubled: [],
      stuck: [],
      stale: [],
      wrong: [],
    });
    expect(history.ended.length).toBeGreaterThan(STATIONS);
  },
  60_000 + FAULTS * 150_000,
);
