/** Metrics: counts, gauges and durations; a value that cannot be read does not hide the others. */
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { addCount, addDuration, addGauge, addGauges, addReadCount } from "../../services/runtime/metrics.ts";

describe("metrics", () => {
  it("a count with a label: each value has a series, also one without events", async () => {
    const registry = new Registry();
    const answers = addCount(registry, {
      name: "answers_total",
      help: "Answers.",
      labels: { result: ["yes", "no", "unknown"] },
    });
    answers.add({ result: "yes" });
    answers.add({ result: "no" }, 2);
    const text = await registry.metrics();
    expect(text).toContain('device_payments_answers_total{result="yes"} 1');
    expect(text).toContain('device_payments_answers_total{result="no"} 2');
    // A counter starts at 0, so that a rate shows its first event.
    expect(text).toContain('device_payments_answers_total{result="unknown"} 0');
  });

  it("a count that is read: each scrape has the current number, without adding", async () => {
    const registry = new Registry();
    let polls = 7;
    addReadCount(registry, { name: "polls_total", help: "Polls.", labels: ["answer"] }, () => [
      [{ answer: "200" }, polls],
    ]);
    expect(await registry.metrics()).toContain('device_payments_polls_total{answer="200"} 7');
    polls = 9;
    expect(await registry.metrics()).toContain('device_payments_polls_total{answer="200"} 9');
  });

  it("a value that cannot be read: it is NaN, and the others are reported", async () => {
    const registry = new Registry();
    addGauge(registry, "rows", "Rows.", () => Promise.reject(new Error("The database is away.")));
    addGauge(registry, "depth", "Depth.", () => {
      throw new Error("Not now.");
    });
    addGauges(registry, { name: "age_seconds", help: "Ages.", labels: ["of"] }, () => [
      [{ of: "a" }, Number.POSITIVE_INFINITY],
      [{ of: "b" }, 0.5],
    ]);
    const text = await registry.metrics();
    // The reader, which is written in Go, accepts any case.
    expect(text).toMatch(/^device_payments_rows nan$/im);
    expect(text).toMatch(/^device_payments_depth nan$/im);
    expect(text).toContain('device_payments_age_seconds{of="a"} +Inf');
    expect(text).toContain('device_payments_age_seconds{of="b"} 0.5');
  });

  it("a duration: it is counted in buckets of seconds", async () => {
    const registry = new Registry();
    const duration = addDuration(registry, { name: "work_seconds", help: "Work.", labels: { type: ["a", "b"] } });
    duration.observe({ type: "a" }, 0.03);
    const text = await registry.metrics();
    expect(text).toContain('device_payments_work_seconds_bucket{le="0.025",type="a"} 0');
    expect(text).toContain('device_payments_work_seconds_bucket{le="0.05",type="a"} 1');
    expect(text).toContain('device_payments_work_seconds_sum{type="a"} 0.03');
    expect(text).toContain('device_payments_work_seconds_count{type="b"} 0');
  });

  it("a count with given series: these start at 0, and no other combination does", async () => {
    const registry = new Registry();
    const series = [{ operation: "read", status: "200" }];
    addCount(registry, { name: "requests_total", help: "R.", labels: { operation: [], status: [] }, series });
    const lines = (await registry.metrics()).split("\n").filter((line) => line.startsWith("device_payments_"));
    expect(lines).toEqual(['device_payments_requests_total{operation="read",status="200"} 0']);
  });

  it("no registry: nothing happens", () => {
    expect(() => {
      addCount(undefined, { name: "a_total", help: "A." }).add({});
      addDuration(undefined, { name: "b_seconds", help: "B." }).observe({}, 1);
      addGauge(undefined, "c", "C.", () => 1);
      addReadCount(undefined, { name: "d_total", help: "D." }, () => []);
    }).not.toThrow();
  });
});
