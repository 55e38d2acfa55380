/** The metrics port: real figures in the text format, nothing else, and one sentence when the port is taken. */
import { afterEach, describe, expect, it } from "vitest";
import { addGauge } from "../../services/runtime/figures.ts";
import { type MetricsServer, startMetrics } from "../../services/runtime/metrics.ts";

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
  it("reads a gauge at the moment of asking", async () => {
    const server = await start();
    let value = 3;
    addGauge(server.registry, "answers_waiting", "Answers that wait.", () => value);
    const read = async (): Promise<string> => (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
    expect(await read()).toContain('answers_waiting{process="test"} 3');
    value = 4;
    const text = await read();
    expect(text).toContain('answers_waiting{process="test"} 4');
    expect(text).toContain("process_cpu_user_seconds_total");
  });

  it("answers nothing but GET /metrics", async () => {
    const server = await start();
    expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${server.port}/metrics`, { method: "POST" })).status).toBe(404);
  });

  it("refuses a taken port in one sentence", async () => {
    const { port } = await start();
    await expect(start(port)).rejects.toMatchObject({ code: "metrics_port_taken" });
  });
});
