/**
 * A process that logs all the time, for the test of the log's output. It reports to its parent how late its event loop was
 * and how many lines it has dropped. It ends on SIGTERM.
 */
import { runProcess } from "../../../services/runtime/lifecycle.ts";
import { createLog, lostLogLines } from "../../../services/runtime/log.ts";

const EVERY_MS = 5;
const LINES = 200;
const log = createLog({ service: "program", level: "info" });

await runProcess({ name: "program", log }, async () => {
  let lastAtMs = performance.now();
  let latestMs = 0;
  let line = 0;
  setInterval(() => {
    const nowMs = performance.now();
    latestMs = Math.max(latestMs, nowMs - lastAtMs);
    lastAtMs = nowMs;
    for (let count = 0; count < LINES; count += 1) log.info({ line: line++, filler: "x".repeat(200) }, "line");
    process.send?.({ latestMs, lines: line, lost: lostLogLines().output });
  }, EVERY_MS);
  return {};
});
