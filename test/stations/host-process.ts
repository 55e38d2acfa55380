/** An actor host in a separate process, which a test can kill, stall and continue. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { stall } from "../support/stall.ts";

const MAIN = join(import.meta.dirname, "..", "..", "services", "main.ts");

export interface HostProcess {
  readonly pid: number;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill9(): Promise<void>;
  /** Sends SIGTERM. Resolves with the exit code when the process has ended. */
  stop(): Promise<number | null>;
  /** Sends SIGSTOP: the process exists and keeps its connection, but does not run. */
  freeze(): void;
  thaw(): void;
}

/** Resolves when the host is ready. */
export async function startHostProcess(environment: NodeJS.ProcessEnv): Promise<HostProcess> {
  const child = fork(MAIN, ["stations"], {
    env: { ...process.env, LOG_LEVEL: process.env.TEST_LOG === "1" ? "debug" : "fatal", ...environment },
    stdio: ["ignore", process.env.TEST_LOG === "1" ? "inherit" : "ignore", "inherit", "ipc"],
  });
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const [message] = (await Promise.race([once(child, "message"), exited.then(() => ["ended"])])) as [unknown];
  if (typeof message !== "object" || message === null || !("ready" in message) || message.ready !== true) {
    throw new Error(`The host did not start: ${JSON.stringify(message)}`);
  }
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    return await exited;
  };
  return {
    pid: child.pid ?? 0,
    async kill9() {
      await end("SIGKILL");
    },
    stop: () => end("SIGTERM"),
    freeze: () => stall(child.pid ?? 0),
    thaw: () => child.kill("SIGCONT"),
  };
}
