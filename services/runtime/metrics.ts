/**
 * Metrics of one process on a port of its own, which the API's port never shows (design §5). Off unless METRICS_PORT is
 * set: an operator decides who may read them. What each process counts is added with `figures.ts`.
 */
import { createServer } from "node:http";
import { collectDefaultMetrics, Registry } from "prom-client";
import { cannotBeUsed } from "./fault.ts";
import { addReadCount } from "./figures.ts";
import { lostLogLines } from "./log.ts";
import { UserError } from "./user-error.ts";

export interface MetricsSettings {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
}

export interface MetricsServer {
  readonly registry: Registry;
  readonly port: number;
  stop(): Promise<void>;
}

/** Answers `GET /metrics` in the Prometheus text format. Throws UserError `metrics_port_taken`. */
export async function startMetrics(name: string, settings: MetricsSettings): Promise<MetricsServer> {
  const registry = new Registry();
  registry.setDefaultLabels({ process: name });
  collectDefaultMetrics({ register: registry });
  addLogMetrics(registry);
  const server = createServer((request, response) => {
    if (request.method !== "GET" || request.url !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { "content-type": registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const subject = `The metrics port ${settings.port} on ${settings.host} (METRICS_PORT, METRICS_HOST)`;
      reject(new UserError(cannotBeUsed(subject, cause), { code: "metrics_port_taken", cause }));
    });
    server.listen(settings.port, settings.host, resolve);
  });
  const address = server.address();
  return {
    registry,
    port: typeof address === "object" && address !== null ? address.port : settings.port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function addLogMetrics(registry: Registry): void {
  const facts = {
    name: "log_lines_lost_total",
    help: "Log lines not written: the output did not take them, or the limit of lines about errors left them out.",
    labels: ["reason"],
  } as const;
  addReadCount(registry, facts, () => Object.entries(lostLogLines()).map(([reason, count]) => [{ reason }, count]));
}
