/**
 * `npm run bench`: every result beside its control, printed as one table and stored as JSON. `-- --short` for a quick one;
 * `-- --only=scale` measures how commands scale with hosts, copies and logs; `-- --only=reconciliation --rows=200000` limits
 * the rows of its longest files.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { startGround } from "./bench-world.ts";
import { callbackFigures, measureCallbacks } from "./callbacks.ts";
import { commandFigures, measureCommands } from "./commands.ts";
import { curveFigures, measureCurve } from "./cost-curve.ts";
import { measureDisplayPolls } from "./display-polls.ts";
import { type Figure, table } from "./figure.ts";
import { pollFigures } from "./polls.ts";
import { measureReconciliation } from "./reconciliation.ts";
import { reconciliationFigures } from "./reconciliation-figures.ts";
import { measureScale, scaleFigures } from "./scale.ts";
import { measureVisibility, visibilityFigures } from "./visibility.ts";
import { measureWebhooks, webhookFigures } from "./webhooks.ts";

const isShort = process.argv.includes("--short");
const option = (name: string): string | undefined =>
  process.argv.find((argument) => argument.startsWith(`--${name}=`))?.slice(`--${name}=`.length);
const only = option("only");
const mostRows = Number(option("rows") ?? (isShort ? 5_000 : 5_000_000));
const rowsUpTo = (...sizes: number[]): number[] => [...new Set(sizes.map((rows) => Math.min(rows, mostRows)))];
const say = (line: string): void => void process.stderr.write(`${line}\n`);

const figures: Figure[] = [];
const raw: Record<string, unknown> = {};

/** Each part has a ground of its own, so that none measures what another left behind. */
async function part<T>(
  name: string,
  measure: (ground: Awaited<ReturnType<typeof startGround>>) => Promise<T>,
  rows: (measured: T) => Figure[],
): Promise<void> {
  if (only !== undefined && only !== name) return;
  say(`${name} …`);
  const ground = await startGround(say);
  try {
    const measured = await measure(ground);
    raw["natsServer"] = ground.natsVersion;
    raw[name] = measured;
    figures.push(...rows(measured));
  } finally {
    await ground.stop();
  }
}

await part(
  "polls",
  (ground) => measureDisplayPolls(ground, { credentials: isShort ? 2_000 : 20_000, rounds: isShort ? 2 : 3 }),
  pollFigures,
);
await part(
  "commands",
  (ground) =>
    measureCommands({
      ground,
      stations: 64,
      collectionsPerStation: isShort ? 5 : 40,
      serialCollections: isShort ? 20 : 200,
    }),
  commandFigures,
);
await part(
  "callbacks",
  (ground) =>
    measureCallbacks(ground, {
      serialCollections: isShort ? 50 : 600,
      stationsAtOnce: 16,
      collectionsEach: isShort ? 5 : 50,
      burstStations: isShort ? 64 : 384,
      burstRounds: isShort ? 1 : 5,
    }),
  callbackFigures,
);
await part(
  "webhooks",
  (ground) =>
    measureWebhooks(ground, {
      deliveries: isShort ? 1_000 : 5_000,
      rounds: isShort ? 1 : 3,
      lagEvents: isShort ? 100 : 300,
    }),
  webhookFigures,
);
await part(
  "reconciliation",
  (ground) =>
    measureReconciliation(ground, {
      importRows: Math.min(200_000, mostRows),
      rounds: isShort ? 1 : 3,
      matchRows: Math.min(1_000_000, mostRows),
      memoryRows: isShort ? rowsUpTo(1_000, 5_000) : rowsUpTo(100_000, 1_000_000, 5_000_000),
    }),
  reconciliationFigures,
);
await part("visibility", (ground) => measureVisibility(ground, { commits: isShort ? 500 : 5_000 }), visibilityFigures);
await part(
  "curve",
  (ground) => measureCurve(ground, isShort ? [1_000, 10_000] : [1_000, 10_000, 100_000, 1_000_000], say),
  curveFigures,
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
    say,
  );
  raw["natsServer"] = natsVersion;
  raw["scale"] = rows;
  figures.push(...scaleFigures(rows));
}

const machine = {
  cpu: cpus()[0]?.model ?? "unknown",
  cores: cpus().length,
  memoryBytes: totalmem(),
  node: process.version,
};
process.stdout.write(
  `\n${table(figures)}\n\n${machine.cores} × ${machine.cpu}, Node ${machine.node}, nats-server ${String(raw["natsServer"])}\n`,
);
if (!isShort && only === undefined) {
  const folder = join(import.meta.dirname, "results");
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "latest.json"),
    `${JSON.stringify({ measuredAt: new Date().toISOString(), machine, figures, raw }, null, 2)}\n`,
  );
  writeFileSync(join(folder, "latest.txt"), `${table(figures)}\n`);
}
