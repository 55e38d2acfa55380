/** A process of two steps for the lifecycle's test; how it goes is named by the first argument. */
import { runProcess } from "../../../services/runtime/lifecycle.ts";
import { createLog } from "../../../services/runtime/log.ts";
import { UserError } from "../../../services/runtime/user-error.ts";

/** Longer than SIGINT lets a process take, shorter than SIGTERM does. */
const DRAIN_MS = 2_000;
const mode = process.argv[2] ?? "normal";
const say = (text: string): void => void process.stdout.write(`step ${text}\n`);
const log = createLog({ service: "program", level: "silent" });

await runProcess({ name: "program", log }, async (run) => {
  const step = async (name: string, work: () => Promise<void>): Promise<void> => {
    const start = async (): Promise<void> => {
      await work();
      say(`${name} starts`);
    };
    await run.step(name, start, async () => {
      if (mode === "drains" && name === "two") await new Promise((resolve) => setTimeout(resolve, DRAIN_MS));
      say(`${name} stops`);
    });
  };
  await step("one", async () => undefined);
  await step("two", async () => {
    if (mode === "refused") throw new UserError("Port 80 is taken.", { code: "port_taken", exitCode: 3 });
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
  if (mode === "rejected") void Promise.reject(new TypeError("nobody caught this"));
  if (mode === "thrown") {
    setImmediate(() => {
      throw new TypeError("nobody caught this either");
    });
  }
  // Something has to keep the process alive, as a connection does.
  setInterval(() => undefined, 60_000);
  return { port: 7 };
});
