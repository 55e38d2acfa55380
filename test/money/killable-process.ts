/** Services in a separate process, like those of `npm start`, which a test may kill at any moment. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

const MAIN = join(import.meta.dirname, "..", "..", "services", "main.ts");

export interface KillableProcess {
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill9(): Promise<void>;
  /** Sends SIGTERM. Resolves when the process has ended. */
  stop(): Promise<void>;
  /** Starts the same services with the same settings after `kill9`. Resolves when they are ready. */
  restart(): Promise<void>;
}

/** Resolves when the services are ready. */
export async function startKillable(
  services: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<KillableProcess> {
  let child = await launch(services, environment);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  };
  return {
    kill9: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    async restart() {
      child = await launch(services, environment);
    },
  };
}

async function launch(services: readonly string[], environment: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const isLoud = process.env.TEST_LOG === "1";
  const child = fork(MAIN, [...services], {
    env: { ...process.env, LOG_LEVEL: isLoud ? "info" : "fatal", ...environment },
    stdio: ["ignore", isLoud ? "inherit" : "ignore", "inherit", "ipc"],
  });
  const ended = once(child, "exit").then(() => ["ended"]);
  const [message] = (await Promise.race([once(child, "message"), ended])) as [unknown];
  if (typeof message !== "object" || message === null || !("ready" in message) || message.ready !== true) {
    throw new Error(`${services.join(", ")} did not start: ${JSON.stringify(message)}`);
  }
  return child;
}
