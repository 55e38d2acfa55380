/**
 * `node test/bench/webhook-soak.ts [seconds]`: checks whether the memory of a signer grows under an even load. The retries,
 * connections and batches of an hour happen in a minute or two, because only their number counts.
 */
import { setTimeout as delay } from "node:timers/promises";
import { median } from "../support/percentile.ts";
import { startBenchWorld } from "./bench-world.ts";
import { residentBytes } from "./cpu-time.ts";
import { startWebhookWorld } from "./webhook-world.ts";

const OWNERS = 20;
/** Several hundred deliveries a second: an hour of a busy chain within two minutes. */
const EVENTS_PER_TURN = 200;
const TURN_MS = 500;
/** In this first part of the time the process takes the memory that it needs for its work. */
const WARM_SHARE = 0.4;
const MOST_GROWTH = 0.05;
const printProgress = (line: string): void => void process.stderr.write(`${line}\n`);

const seconds = Number(process.argv[2] ?? 120);
const world = await startBenchWorld(printProgress);
const webhooks = await startWebhookWorld(world, { owners: OWNERS });
const samples: number[] = [];
const endMs = Date.now() + seconds * 1_000;
let published = 0;
while (Date.now() < endMs) {
  const turnEndMs = Date.now() + TURN_MS;
  await webhooks.publish(EVENTS_PER_TURN);
  published += EVENTS_PER_TURN;
  // Empties the list of the receiver, so that it does not grow.
  await webhooks.arrived();
  samples.push(residentBytes(webhooks.signer.pid));
  await delay(Math.max(0, turnEndMs - Date.now()));
}
await webhooks.until("delivered", published);
const warm = samples.slice(Math.floor(samples.length * WARM_SHARE));
const part = Math.max(1, Math.floor(warm.length / 4));
const growth = median(warm.slice(-part)) / median(warm.slice(0, part)) - 1;
await webhooks.stop();
await world.stop();
const megabytes = (bytes: number | undefined): string => `${Math.round((bytes ?? 0) / 1_048_576)} MB`;
printProgress(
  `${published} deliveries in ${seconds} s; ${megabytes(warm[0])} warm, ${megabytes(warm.at(-1))} at the end: ${(growth * 100).toFixed(1)} % growth, at most ${MOST_GROWTH * 100} % allowed.`,
);
if (growth > MOST_GROWTH) process.exitCode = 1;
