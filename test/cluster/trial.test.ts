/**
 * Collections on three NATS servers while servers and processes fail, in its short form. The long form is
 * `npm run chaos`.
 *
 *   CLUSTER_SEED=42 CLUSTER_FAULTS=20 npx vitest run test/cluster/trial.test.ts
 */
import { expect, onTestFinished, test } from "vitest";
import { Random } from "../chaos/random.ts";
import { drawFaults, TARGETS, type Targets } from "./draw-faults.ts";
import { checkOut } from "./older-checkout.ts";
import { runTrial } from "./trial.ts";
import { upgradeSteps } from "./upgrade.ts";

const FAULTS = Number(process.env.CLUSTER_FAULTS ?? "2");
const SEED = Number(process.env.CLUSTER_SEED ?? "20261122");
const STATIONS = Number(process.env.CLUSTER_STATIONS ?? "4");
const TARGET = (process.env.CLUSTER_TARGETS ?? "all") as Targets;
if (!(TARGET in TARGETS)) throw new Error(`CLUSTER_TARGETS is none of ${Object.keys(TARGETS).join(", ")}.`);

/** A commit: the trial is a rolling upgrade from it. */
const UPGRADE_FROM = process.env.CLUSTER_UPGRADE_FROM;
const WHAT = UPGRADE_FROM === undefined ? `${FAULTS} faults (CLUSTER_SEED=${SEED})` : `an upgrade from ${UPGRADE_FROM}`;
const UPGRADE_MS = 30 * 60_000;

test(
  `${WHAT}: nothing is lost, doubled, stuck, wrong, stale or late`,
  async () => {
    const print = (line: string): void => void process.stderr.write(`${line}\n`);
    const older = UPGRADE_FROM === undefined ? undefined : await checkOut(UPGRADE_FROM);
    if (older !== undefined) onTestFinished(() => older.remove());
    const draws = older === undefined ? drawFaults(FAULTS, new Random(SEED), TARGET) : upgradeSteps(older);
    const trial = await runTrial({ seed: SEED, stations: STATIONS, draws, older, print });
    const { lost, doubled, stuck, stale, late, history } = trial;
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
  UPGRADE_FROM === undefined ? 60_000 + FAULTS * 150_000 : UPGRADE_MS,
);
