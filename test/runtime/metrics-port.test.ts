/** The metrics port: metrics in the text format, the health of the process, and an error when the port is in use. */
import { afterEach, describe, expect, it } from "vitest";
import { addGauge } from "../../services/runtime/metrics.ts";
import { type MetricsServer, startMetrics } from "../../services/runtime/metrics-port.ts";
import { VERSION } from "../../services/runtime/version.ts";
import { metricSum, scrape } from "../support/scrape.ts";

const started: MetricsServer[] = [];

afterEach(async () => {
  for (const server of started.splice(0)) await server.stop();
});

async function start(port = 0): Promise<MetricsServer> {
  const server = await startMetrics("test", { host: "127.0.0.1", port });
  started.push(server);
  return server;
}

describe("the metrics port", () => {
  it("a gauge: it is read at each request", async () => {
    const server = await start();
    let value = 3;
    addGauge(server.registry, "answers_waiting", "Answers that wait.", () => value);
    const read = async (): Promise<string> => (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
    expect(await read()).toContain('device_payments_answers_waiting{process="test"} 3');
    value = 4;
    const text = await read();
    expect(text).toContain('device_payments_answers_waiting{process="test"} 4');
    expect(text).toContain("device_payments_process_cpu_user_seconds_total");
  });

  it("every metric: it has the prefix of this product, and build_info has the versions of the product and Node", async () => {
    const { port } = await start();
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name ?? "");
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !name.startsWith("device_payments_"))).toEqual([]);
    const node = process.versions.node;
    expect(text).toContain(`device_payments_build_info{version="${VERSION}",node="${node}",process="test"} 1`);
  });

  it("/healthz, /readyz and the metric `ready`: alive at once, and ready while nothing is missing", async () => {
    const server = await start();
    const ask = async (path: string) => {
      const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
      return [answer.status, await answer.text()];
    };
    const ready = async () => metricSum(await scrape(server.port), "ready");
    expect(await ask("/healthz")).toEqual([200, "alive\n"]);
    expect([await ask("/readyz"), await ready()]).toEqual([[503, "starting\n"], 0]);
    let missing: readonly string[] = [];
    server.reportReadiness(() => missing);
    expect([await ask("/readyz"), await ready()]).toEqual([[200, "ready\n"], 1]);
    missing = ["bus", "stations"];
    expect([await ask("/readyz"), await ready()]).toEqual([[503, "bus\nstations\n"], 0]);
    expect(await ask("/healthz")).toEqual([200, "alive\n"]);
  });

  it("another path or method: 404", async () => {
    const server = await start();
    expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${server.port}/metrics`, { method: "POST" })).status).toBe(404);
  });

  it("a port that is in use: the start fails with metrics_port_taken", async () => {
    const { port } = await start();
    await expect(start(port)).rejects.toMatchObject({ code: "metrics_port_taken" });
  });
});
