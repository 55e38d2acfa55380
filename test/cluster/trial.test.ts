/**
 * Collections on three NATS servers while servers and processes fail, in its short form. The long form is
 * `npm run chaos`.
 *
 *   CLUSTER_SEED=42 CLUSTER_FAULTS=20 npx vitest run test/cluster/trial.test.ts
 */
import { expect, test } from "vitest";
import { TARGETS, type Targets } from "./faults.ts";
import { runTrial } from "./trial.ts";

const FAULTS = Number(process.env.CLUSTER_FAULTS ?? "2");
const SEED = Number(process.env.CLUSTER_SEED ?? "20261122");
const STATIONS = Number(process.env.CLUSTER_STATIONS ?? "4");
const TARGET = (process.env.CLUSTER_TARGETS ?? "all") as Targets;
if (!(TARGET in TARGETS)) throw new Error(`CLUSTER_TARGETS is none of ${Object.keys(TARGETS).join(", ")}.`);

test(
  `${FAULTS} faults (CLUSTER_SEED=${SEED}): nothing is lost, doubled, stuck, wrong, stale or late`,
  async () => {
    const print = (line: string): void => void process.stderr.write(`${line}\n`);
    const { lost, doubled, stuck, stale, late, history } = await runTrial({
      seed: SEED,
      faults: FAULTS,
      stations: STATIONS,
      targets: TARGET,
      print,
    });
    print(`${history.ended.length} collections; later: ${JSON.stringify(Object.fromEntries(history.later))}`);
    expect({ lost, doubled, stuck, stale, late, wrong: history.wrongErrors }).toEqual({
      lost: [],
      doubled: [],
      stuck: [],
      stale: [],
      late: [],
      wrong: [],
    });
    expect(history.ended.length).toBeGreaterThan(STATIONS);
  },
  60_000 + FAULTS * 150_000,
);
