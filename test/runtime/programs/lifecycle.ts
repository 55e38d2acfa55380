/** A process of two steps for the lifecycle test. The first argument selects its behaviour. */
import { exitWith, runProcess } from "../../../services/runtime/lifecycle.ts";
import { createLog } from "../../../services/runtime/log.ts";
import { UserError } from "../../../services/runtime/user-error.ts";

/** Longer than a process may take to stop after SIGINT, and shorter than after SIGTERM. */
const DRAIN_MS = 2_000;
const mode = process.argv[2] ?? "normal";
const print = (text: string): void => void process.stdout.write(`step ${text}\n`);
const log = createLog({ service: "program", level: "silent" });

const diskFull = (): Error => Object.assign(new Error("write"), { code: "ENOSPC" });
if (mode === "early") exitWith(diskFull());

await runProcess({ name: "program", log }, async (run) => {
  const step = async (name: string, work: () => Promise<void>): Promise<void> => {
    const start = async (): Promise<void> => {
      await work();
      print(`${name} starts`);
    };
    await run.step(name, start, async () => {
      if (mode === "drains" && name === "two") await new Promise((resolve) => setTimeout(resolve, DRAIN_MS));
      print(`${name} stops`);
    });
  };
  await step("one", async () => undefined);
  await step("two", async () => {
    if (mode === "refused") throw new UserError("Port 80 is taken.", { code: "port_taken", exitCode: 3 });
    if (mode === "known") throw diskFull();
    if (mode === "broken") throw new TypeError("undefined is not a function");
    if (mode === "hangs") {
      process.send?.("starting");
      await new Promise(() => setInterval(() => undefined, 60_000));
    }
    if (mode !== "slow") return;
    process.send?.("starting");
    await new Promise((resolve) => setTimeout(resolve, 300));
  });
  if (mode === "slow") await step("three", async () => undefined);
  if (mode === "rejected") void Promise.reject(new TypeError("rejected without a catch"));
  if (mode === "thrown") {
    setImmediate(() => {
      throw new TypeError("thrown without a catch");
    });
  }
  // This timer keeps the process alive, as a connection does in a service.
  setInterval(() => undefined, 60_000);
  return { port: 7 };
});
