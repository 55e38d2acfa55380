/**
 * Writes into each golden trace of the device kit the effects and regions that the machines compute from its events. Review
 * the difference: each port of the kit must replay the traces.
 *
 *   node test/clients/device-kit/write-traces.ts
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTrace, replay, TRACES, traceFiles } from "./traces.ts";

for (const file of traceFiles) {
  const trace = readTrace(file);
  const steps = replay(trace).map(({ step, effects, after }) => ({ ...step, effects, regions: after }));
  writeFileSync(join(TRACES, file), `${JSON.stringify({ ...trace, steps }, null, 2)}\n`);
}
