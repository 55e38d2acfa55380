/**
 * `npm run soak`: the long forms of tests that draw what they do, and the signer under an even load for two minutes. It
 * takes about half an hour; `npm test` runs the short forms.
 */
import { runCommand } from "../deploy/run-command.ts";

const LONG_FORMS = [
  { file: "test/chaos/kill.test.ts", environment: { CHAOS_COLLECTIONS: "200" } },
  { file: "test/gateway/random-requests.test.ts", environment: { RANDOM_REQUESTS: "10000" } },
  { file: "test/registry/enrollment-timing.test.ts", environment: { TIMING_TRIES: "3000" } },
  { file: "test/chaos/two-claims.test.ts", environment: { TIMING_TRIES: "3000" } },
  { file: "test/conformance/broken-services.test.ts", environment: { CONFORMANCE_BROKEN: "all" } },
  { file: "test/conformance/devices/devices.test.ts", environment: { CONFORMANCE_BROKEN: "all" } },
  { file: "test/reconciliation/bounded-memory.test.ts", environment: { RECONCILIATION_SIZE: "whole" } },
  { file: "test/reconciliation/kills.test.ts", environment: { RECONCILIATION_KILLS: "all" } },
  { file: "test/reconciliation/matching/properties.test.ts", environment: { PROPERTY_RUNS: "50" } },
  { file: "test/stations/races.test.ts", environment: { RACE_ROUNDS: "500" } },
  { file: "test/clients/device-kit/power-cuts.test.ts", environment: { POWER_CUTS: "all" } },
  { file: "test/money/interleavings.test.ts", environment: { MONEY_RUNS: "40" } },
  { file: "test/webhook-signer/kills-at-steps.test.ts", environment: { KILLS_EVENTS: "10000" } },
  { file: "test/webhook-signer/processes.test.ts", environment: { KILLS_EVENTS: "10000" } },
];

for (const { file, environment } of LONG_FORMS) {
  Object.assign(process.env, environment);
  const { code } = await runCommand("vitest", ["run", file]);
  if (code !== 0) process.exitCode = 1;
}
const { code } = await runCommand("node", ["test/bench/webhook-soak.ts", ...process.argv.slice(2)]);
if (code !== 0) process.exitCode = 1;
