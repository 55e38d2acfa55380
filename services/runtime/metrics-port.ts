/**
 * Metrics, liveness and readiness of one process on a separate port: the API's port never shows the metrics (design
 * §5). It is off unless METRICS_PORT is set: an operator decides who may read the metrics. The components of a process
 * add their metrics with `metrics.ts`.
 */
import type { ServerResponse } from "node:http";
import { collectDefaultMetrics, Registry } from "prom-client";
import { cannotBeUsed } from "./fault.ts";
import { lostLogLines } from "./log.ts";
import { addGauge, addGauges, addReadCount, METRIC_PREFIX } from "./metrics.ts";
import { createServer, type Listening, listen } from "./node-http.ts";
import { VERSION } from "./version.ts";

const TEXT = { "content-type": "text/plain; charset=utf-8" };

interface MetricsSettings {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
}

export interface MetricsServer extends Listening {
  readonly registry: Registry;
  /**
   * `/readyz` and the metric `ready` call `missing` from now on. It returns the reasons why the process is not ready, and
   * none while it is.
   */
  reportReadiness(missing: () => readonly string[]): void;
}

/**
 * Answers `GET /metrics` in the Prometheus text format, `/healthz` while the process runs, and `/readyz` with 200 when it
 * is ready, otherwise with 503 and the reasons. Throws UserError `metrics_port_taken`.
 */
export async function startMetrics(name: string, settings: MetricsSettings): Promise<MetricsServer> {
  const registry = new Registry();
  registry.setDefaultLabels({ process: name });
  collectDefaultMetrics({ register: registry, prefix: METRIC_PREFIX });
  addBuildInfo(registry);
  addLogMetrics(registry);
  let missing = isStarting;
  const help = "1 while the process is ready; 0 also before it has reached its servers.";
  addGauge(registry, "ready", help, () => Number(missing().length === 0));
  const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
    "/metrics": (response) => {
      registry.metrics().then(
        (text) => response.writeHead(200, { "content-type": registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
    },
    "/healthz": (response) => response.writeHead(200, TEXT).end("alive\n"),
    "/readyz": (response) => {
      const reasons = missing();
      response.writeHead(reasons.length === 0 ? 200 : 503, TEXT).end(`${reasons.join("\n") || "ready"}\n`);
    },
  };
  const server = createServer((request, response) => {
    const answer = request.method === "GET" ? answers[request.url ?? ""] : undefined;
    if (answer === undefined) response.writeHead(404).end();
    else answer(response);
  });
  const subject = `The metrics port ${settings.port} on ${settings.host} (METRICS_PORT, METRICS_HOST)`;
  const sentence = (cause: Error): string => cannotBeUsed(subject, cause);
  const listening = await listen(server, settings, { code: "metrics_port_taken", sentence });
  return {
    ...listening,
    registry,
    reportReadiness: (readReasons) => {
      missing = readReasons;
    },
  };
}

const isStarting = (): readonly string[] => ["starting"];

function addBuildInfo(registry: Registry): void {
  const facts = {
    name: "build_info",
    help: "Always 1: which version runs, on which Node.",
    labels: ["version", "node"],
  } as const;
  addGauges(registry, facts, () => [[{ version: VERSION, node: process.versions.node }, 1]]);
}

function addLogMetrics(registry: Registry): void {
  const facts = {
    name: "log_lines_lost_total",
    help: "Log lines not written: the output did not take them, or the limit of lines about errors left them out.",
    labels: ["reason"],
  } as const;
  addReadCount(registry, facts, () => Object.entries(lostLogLines()).map(([reason, count]) => [{ reason }, count]));
}
