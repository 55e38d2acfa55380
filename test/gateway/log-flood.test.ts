/** A flood of refused requests: the log stays small, and the metrics count every request. */
import { Pool } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { send } from "../support/http.ts";
import { metricSum, scrape } from "../support/scrape.ts";
import { type GatewayProcess, startGatewayProcess } from "./gateway-process.ts";
import { type GatewayWorld, startGatewayWorld } from "./gateway-world.ts";

const REQUESTS = 2_000;
/** The line of a request has some 400 bytes. The flood may add ten lines and a summary for each of its two codes. */
const MOST_LOG_BYTES = 16 * 1_024;

let world: GatewayWorld;
let gateway: GatewayProcess;
beforeAll(async () => {
  world = await startGatewayWorld();
  gateway = await startGatewayProcess(world.nats.url, { METRICS_PORT: "0" });
});
afterAll(async () => {
  await gateway.stop();
  await world.stop();
});

/** Sends the same refused request that many times in all, from 16 connections. */
async function flood(requests: number): Promise<void> {
  const pool = new Pool(gateway.baseUrl, { connections: 16 });
  const path = "/api/payments/v1/devices/enroll/";
  const headers = { "content-type": "application/json" };
  let left = requests;
  const one = async (): Promise<void> => {
    for (; left > 0; ) {
      left -= 1;
      const { body } = await pool.request({ method: "POST", path, headers, body: "{}" });
      await body.dump();
    }
  };
  await Promise.all(Array.from({ length: 16 }, one));
  await pool.close();
}

const sizeOf = (lines: readonly object[]): number => JSON.stringify(lines).length;

describe("the gateway's log", () => {
  test("a flood of refused requests: a few lines of each code and a summary; no count is lost", async () => {
    const token = await world.session({ permissions: ["payments.collect"], userId: 42, organizationId: 1 });
    await expect.poll(() => gateway.log().at(-1)?.["msg"]).toBe("ready");
    const before = gateway.log().length;
    await flood(REQUESTS);
    const order = "/api/cashier/v1/stations/1/orders/";
    await expect.poll(async () => (await send(gateway.baseUrl, "POST", order, { token, json: {} })).status).toBe(400);

    const series = await scrape(gateway.metricsPort);
    const counted = metricSum(series, "gateway_requests_total", { operation: "payments_device_enroll" });
    expect(counted).toBe(REQUESTS);
    const lost = metricSum(series, "log_lines_lost_total", { reason: "limit" }) ?? 0;

    // The gateway writes the summaries when the window ends, or when the process ends.
    gateway.signal("SIGTERM");
    await expect.poll(() => gateway.log().at(-1)?.["of"], { timeout: 15_000 }).toBe("request");
    const lines = gateway.log().slice(before);
    expect(sizeOf(lines)).toBeLessThan(MOST_LOG_BYTES);
    const enrollments = lines.filter((line) => line["operation"] === "payments_device_enroll");
    const summaries = lines.filter((line) => line["msg"] === "similar lines were left out");
    expect(enrollments.length).toBeLessThanOrEqual(20);
    const leftOut = summaries.reduce((sum, line) => sum + Number(line["lines"]), 0);
    expect(enrollments.length + leftOut).toBe(REQUESTS);
    expect(leftOut).toBe(lost);
    // The flood does not suppress the lines of a logged-in person.
    expect(lines).toContainEqual(expect.objectContaining({ userId: 42, refusal: "invalid_request" }));
  });
});
