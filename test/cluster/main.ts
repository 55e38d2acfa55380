/**
 * `npm run chaos`: the long form of the trial on a cluster, once for each seed; it prints a table of faults.
 *
 *   npm run chaos -- --faults=100 --seeds=1,2 --stations=12
 *   npm run chaos -- --faults=8 --seeds=3 --targets=servers
 *   npm run chaos -- --upgrade-from=v0.2.0
 */
import { parseArgs } from "node:util";
import { runCommand } from "../../deploy/run-command.ts";

const { values } = parseArgs({
  options: {
    faults: { type: "string", default: "100" },
    seeds: { type: "string", default: "1,2" },
    stations: { type: "string", default: "12" },
    /** `servers`, `processes` or `all`. */
    targets: { type: "string", default: "all" },
    /** A commit: its programs are replaced by these, one at a time, in place of faults. */
    "upgrade-from": { type: "string" },
  },
});

const { "upgrade-from": upgradeFrom } = values;
if (upgradeFrom !== undefined) process.env["CLUSTER_UPGRADE_FROM"] = upgradeFrom;
for (const seed of upgradeFrom === undefined ? values.seeds.split(",") : ["1"]) {
  process.env["CLUSTER_FAULTS"] = values.faults;
  process.env["CLUSTER_STATIONS"] = values.stations;
  process.env["CLUSTER_SEED"] = seed;
  process.env["CLUSTER_TARGETS"] = values.targets;
  const { code } = await runCommand("vitest", ["run", "--project", "timed", "test/cluster/trial.test.ts"]);
  if (code !== 0) process.exitCode = 1;
}
