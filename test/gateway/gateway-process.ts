/** A gateway as `npm start` runs it: a process that tests can stop, freeze and kill. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startServiceProcess } from "../../deploy/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

export interface GatewayProcess {
  readonly baseUrl: string;
  readonly port: number;
  readonly pid: number;
  /** The port of its metrics; 0 unless METRICS_PORT is set. */
  readonly metricsPort: number;
  signal(signal: NodeJS.Signals): void;
  /** Its log so far, line by line. A line appears here a moment after the gateway has logged it. */
  log(): Record<string, unknown>[];
  /** Sends SIGTERM; resolves with the exit code once the process has ended. */
  stop(): Promise<number | null>;
}

export async function startGatewayProcess(
  natsUrl: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<GatewayProcess> {
  const folder = temporaryFolder("gateway");
  const logFile = join(folder.path, "gateway.log");
  const { child, ready } = await startServiceProcess({
    name: "gateway",
    script: join(import.meta.dirname, "..", "..", "gateway", "main.ts"),
    args: [],
    environment: { ...process.env, LOG_LEVEL: "info", NATS_URL: natsUrl, HOST: "127.0.0.1", PORT: "0", ...environment },
    logFile,
  });
  const port = Number(ready.port);
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid,
    metricsPort: Number(ready["metricsPort"] ?? 0),
    signal: (signal) => void child.process.kill(signal),
    log: () =>
      (existsSync(logFile) ? readFileSync(logFile, "utf8") : "")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    async stop() {
      child.process.kill("SIGTERM");
      const exit = await child.exited;
      folder.remove();
      return exit.code;
    },
  };
}
