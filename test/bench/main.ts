/** `npm run bench`: each result beside its control, in a table for each part, which is stored as it was printed. */
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { commandOptions } from "../support/command-options.ts";
import { type BenchResult, table } from "./bench-result.ts";
import { startBenchWorld } from "./bench-world.ts";
import { callbackResults, measureCallbacks } from "./callbacks.ts";
import { commandResults, measureCommands } from "./commands.ts";
import { curveResults, measureCurve } from "./cost-curve.ts";
import { measureDisplayPolls } from "./display-polls.ts";
import { idleResults, measureIdle } from "./idle.ts";
import { pollResults } from "./polls.ts";
import { measureReconciliation } from "./reconciliation.ts";
import { reconciliationResults } from "./reconciliation-results.ts";
import { measureScale, scaleResults } from "./scale.ts";
import { measureVisibility, visibilityResults } from "./visibility.ts";
import { measureWebhooks, webhookResults } from "./webhooks.ts";

const PARTS = ["polls", "commands", "callbacks", "webhooks", "reconciliation", "idle", "visibility", "curve", "scale"];
const HELP = `Measures the speed of an installation on this machine and prints each result beside its control.

  npm run bench
  npm run bench -- --short
  npm run bench -- --only=polls

  --short             measures less
  --only=PART         one part: ${PARTS.join(", ")}
  --rows=5000000      the most rows of the reconciliation's files

  A complete run takes about an hour. The table of each part is stored in test/bench/results/, except that of a short run.
  "scale" runs only when it is named.
`;

const values = commandOptions(HELP, {
  short: { type: "boolean", default: false },
  only: { type: "string" },
  rows: { type: "string" },
});
const { short: isShort, only } = values;
if (only !== undefined && !PARTS.includes(only)) {
  process.stderr.write(`There is no part ${only}. Name one of these: ${PARTS.join(", ")}.\n`);
  process.exit(2);
}
const maxRows = Number(values.rows ?? (isShort ? 5_000 : 5_000_000));
const rowsUpTo = (...sizes: number[]): number[] => [...new Set(sizes.map((rows) => Math.min(rows, maxRows)))];
const printProgress = (line: string): void => void process.stderr.write(`${line}\n`);

function report(name: string, natsVersion: string, results: readonly BenchResult[]): void {
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}, Node ${process.version}, nats-server ${natsVersion}`;
  const text = `${table(results)}\n\n${machine}\n`;
  process.stdout.write(`\n${text}`);
  if (!isShort) writeFileSync(join(import.meta.dirname, "results", `${name}.txt`), text);
}

/** Each part has a separate world, so that no part measures what an earlier one left behind. */
async function part<T>(
  name: string,
  measure: (world: Awaited<ReturnType<typeof startBenchWorld>>) => Promise<T>,
  rows: (measured: T) => BenchResult[],
): Promise<void> {
  if (only !== undefined && only !== name) return;
  printProgress(`${name} …`);
  const world = await startBenchWorld(printProgress);
  try {
    report(name, world.natsVersion, rows(await measure(world)));
  } finally {
    await world.stop();
  }
}

await part(
  "polls",
  (world) => measureDisplayPolls(world, { credentials: isShort ? 2_000 : 20_000, rounds: isShort ? 2 : 3 }),
  pollResults,
);
await part(
  "commands",
  (world) =>
    measureCommands({
      world,
      stations: 64,
      collectionsPerStation: isShort ? 5 : 40,
      serialCollections: isShort ? 20 : 200,
    }),
  commandResults,
);
await part(
  "callbacks",
  (world) =>
    measureCallbacks(world, {
      serialCollections: isShort ? 50 : 600,
      stationsAtOnce: 16,
      collectionsEach: isShort ? 5 : 50,
      burstStations: isShort ? 64 : 384,
      burstRounds: isShort ? 1 : 5,
    }),
  callbackResults,
);
await part(
  "webhooks",
  (world) =>
    measureWebhooks(world, {
      deliveries: isShort ? 1_000 : 5_000,
      rounds: isShort ? 1 : 3,
      lagEvents: isShort ? 100 : 300,
    }),
  webhookResults,
);
await part(
  "reconciliation",
  (world) =>
    measureReconciliation(world, {
      importRows: Math.min(200_000, maxRows),
      rounds: isShort ? 1 : 3,
      matchRows: Math.min(1_000_000, maxRows),
      memoryRows: isShort ? rowsUpTo(1_000, 5_000) : rowsUpTo(100_000, 1_000_000, 5_000_000),
    }),
  reconciliationResults,
);
await part(
  "idle",
  (world) =>
    measureIdle(world, isShort ? { calmMs: 5_000, measuredMs: 5_000 } : { calmMs: 180_000, measuredMs: 30_000 }),
  idleResults,
);
await part("visibility", (world) => measureVisibility(world, { commits: isShort ? 500 : 5_000 }), visibilityResults);
await part(
  "curve",
  (world) => measureCurve(world, isShort ? [1_000, 10_000] : [1_000, 10_000, 100_000, 1_000_000], printProgress),
  curveResults,
);

if (only === "scale") {
  const { natsVersion, rows } = await measureScale(
    {
      layouts: [1, 3].flatMap((replicas) => [1, 6].map((logs) => ({ replicas, logs }))),
      hosts: [1, 2, 4],
      stations: 64,
      collectionsPerStation: isShort ? 3 : 10,
      rounds: isShort ? 1 : 2,
    },
    printProgress,
  );
  report("scale", natsVersion, scaleResults(rows));
}
