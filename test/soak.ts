/** `npm run soak`: the long forms of tests, and the signer under an even load; `npm test` runs the short forms. */
import { runCommand } from "../deploy/run-command.ts";
import { commandOptions } from "./support/command-options.ts";

const LONG_FORMS = [
  { file: "test/chaos/kill.test.ts", environment: { CHAOS_COLLECTIONS: "200" } },
  { file: "test/gateway/random-requests.test.ts", environment: { RANDOM_REQUESTS: "10000" } },
  { file: "test/gateway/edge/random-connections.test.ts", environment: { CONNECTIONS_MS: "60000" } },
  { file: "test/browser/day-long.test.ts", environment: { DAY_HOURS: "24" } },
  { file: "test/registry/enrollment-timing.test.ts", environment: { TIMING_TRIES: "3000" } },
  { file: "test/chaos/two-claims.test.ts", environment: { CLAIM_ROUNDS: "400", TIMING_TRIES: "3000" } },
  { file: "test/conformance/broken-services.test.ts", environment: { CONFORMANCE_BROKEN: "all" } },
  { file: "test/conformance/devices/devices.test.ts", environment: { CONFORMANCE_BROKEN: "all" } },
  { file: "test/reconciliation/bounded-memory.test.ts", environment: { RECONCILIATION_SIZE: "whole" } },
  { file: "test/reconciliation/kills.test.ts", environment: { RECONCILIATION_KILLS: "all" } },
  { file: "test/reconciliation/matching/properties.test.ts", environment: { PROPERTY_RUNS: "50" } },
  { file: "test/stations/races.test.ts", environment: { RACE_ROUNDS: "500" } },
  { file: "test/robotics/races.test.ts", environment: { RACE_ROUNDS: "300" } },
  { file: "test/deploy/find-nats-server.test.ts", environment: { NATS_SERVER_FROM: "debian" } },
  { file: "test/audit/copy-faults.test.ts", environment: { FAULT_ROUNDS: "6" } },
  { file: "test/relay/failure.test.ts", environment: { RELAY_ROUNDS: "60" } },
  { file: "test/clients/device-kit/power-cuts.test.ts", environment: { POWER_CUTS: "all" } },
  { file: "test/clients/magic-behaviours.test.ts", environment: { MAGIC_ENDINGS: "all" } },
  { file: "test/money/interleavings.test.ts", environment: { MONEY_RUNS: "40" } },
  { file: "test/webhook-signer/memory.test.ts", environment: { MEMORY_TURN: "500" } },
  { file: "test/webhook-signer/kills-at-steps.test.ts", environment: { KILLS_EVENTS: "10000" } },
  { file: "test/webhook-signer/processes.test.ts", environment: { KILLS_EVENTS: "10000" } },
];

const HELP = `Runs the long forms of tests one after another, and then the webhook signer under an even load. It takes about an hour.

  npm run soak
  npm run soak -- --only=devices
  npm run soak -- --seconds=600

  --only=TEXT         the long forms whose file's name has this text, and not the signer
  --seconds=120       how long the signer is under load
`;

const { only, seconds } = commandOptions(HELP, {
  only: { type: "string" },
  seconds: { type: "string", default: "120" },
});
const chosen = LONG_FORMS.filter(({ file }) => only === undefined || file.includes(only));
if (chosen.length === 0) {
  process.stderr.write(`No long form has "${only}" in its file's name.\n`);
  process.exit(2);
}
for (const { file, environment } of chosen) {
  Object.assign(process.env, environment);
  const { code } = await runCommand("vitest", ["run", file]);
  if (code !== 0) process.exitCode = 1;
}
if (only === undefined) {
  const { code } = await runCommand("node", ["test/bench/webhook-soak.ts", seconds]);
  if (code !== 0) process.exitCode = 1;
}
