/** `npm run chaos`: the long form of the trial on a cluster, once for each seed; it prints a table of faults. */
import { runCommand } from "../../deploy/run-command.ts";
import { commandOptions } from "../support/command-options.ts";

const HELP = `Collects at stations on a cluster of three NATS servers while faults happen, and judges what was seen.

  npm run chaos
  npm run chaos -- --faults=8 --seeds=3 --targets=servers
  npm run chaos -- --upgrade-from=v0.2.0

  --faults=100        faults of each trial
  --seeds=1,2         one trial for each seed, which decides the faults and their order
  --stations=12       stations that collect at once
  --targets=all       servers, processes, both (all), or rare: networks, disks, PostgreSQL, two at once
  --upgrade-from=COMMIT
                      its processes are replaced by these, one at a time, in place of faults

  Exit codes: 0 nothing was lost, doubled, stuck, wrong, stale, late or slow; 1 something was.
`;

const values = commandOptions(HELP, {
  faults: { type: "string", default: "100" },
  seeds: { type: "string", default: "1,2" },
  stations: { type: "string", default: "12" },
  targets: { type: "string", default: "all" },
  "upgrade-from": { type: "string" },
});

const { "upgrade-from": upgradeFrom } = values;
if (upgradeFrom !== undefined) process.env["CLUSTER_UPGRADE_FROM"] = upgradeFrom;
for (const seed of upgradeFrom === undefined ? values.seeds.split(",") : ["1"]) {
  process.env["CLUSTER_FAULTS"] = values.faults;
  process.env["CLUSTER_STATIONS"] = values.stations;
  process.env["CLUSTER_SEED"] = seed;
  process.env["CLUSTER_TARGETS"] = values.targets;
  const { code } = await runCommand("vitest", ["run", "test/cluster/trial.test.ts"]);
  if (code !== 0) process.exitCode = 1;
}
