/**
 * Measures webhooks: deliveries per second from PostgreSQL to a local TLS target, and the CPU time of each. The control is a
 * bare undici loop that signs as much and uses as many connections. Also measures how long after its commit an event arrives.
 */
import { setTimeout as delay } from "node:timers/promises";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { median, percentile } from "../support/percentile.ts";
import { type BenchResult, oneDecimal, wholeNumber } from "./bench-result.ts";
import type { BenchWorld } from "./bench-world.ts";
import { cpuTimeUs, familyCpuTimeUs } from "./cpu-time.ts";
import { startWebhookWorld, type WebhookWorld } from "./webhook-world.ts";

export interface WebhookMeasurement {
  readonly deliveries: number;
  readonly connections: number;
  readonly perSecond: number;
  readonly controlPerSecond: number;
  /** The CPU time of the sending process for one delivery, and the CPU time of PostgreSQL. */
  readonly cpuUs: number;
  readonly controlCpuUs: number;
  readonly postgresCpuUs: number;
  readonly lagEvents: number;
  readonly lagP50Ms: number;
  readonly lagP99Ms: number;
}

/** Each owner has one endpoint. The control has as many connections as these endpoints may have requests in flight. */
const OWNERS = 4;
/** Events per second while the lag is measured: the load of a busy chain, far below the maximum. */
const LAG_EVENTS_PER_SECOND = 100;

export async function measureWebhooks(
  world: BenchWorld,
  plan: { readonly deliveries: number; readonly rounds: number; readonly lagEvents: number },
): Promise<WebhookMeasurement> {
  const webhooks = await startWebhookWorld(world, { owners: OWNERS });
  const connections = OWNERS * SIGNER_LIMITS.inFlightPerEndpoint;
  const control = await world.startProcess("webhook-control", "test/bench/load/webhook-control.ts", [
    webhooks.url,
    webhooks.caFile,
    String(connections),
    String(plan.deliveries),
  ]);
  const measured: {
    perSecond: number;
    cpuUs: number;
    postgresCpuUs: number;
    controlPerSecond: number;
    controlCpuUs: number;
  }[] = [];
  // The first round warms up the signer and the control, and is not counted.
  for (let round = 0; round <= plan.rounds; round += 1) {
    const signer = await drain(world, webhooks, plan.deliveries);
    const cpuBefore = cpuTimeUs(control.pid);
    const { elapsedMs } = await control.ask<{ elapsedMs: number }>();
    const controlCpuUs = (cpuTimeUs(control.pid) - cpuBefore) / plan.deliveries;
    await webhooks.arrived();
    if (round > 0) measured.push({ ...signer, controlCpuUs, controlPerSecond: (plan.deliveries / elapsedMs) * 1_000 });
  }
  await control.stop();
  const lags = await measureLags(webhooks, plan.lagEvents);
  await webhooks.stop();
  const middle = (of: (round: (typeof measured)[number]) => number): number => median(measured.map(of));
  return {
    deliveries: plan.deliveries,
    connections,
    perSecond: middle((round) => round.perSecond),
    controlPerSecond: middle((round) => round.controlPerSecond),
    cpuUs: middle((round) => round.cpuUs),
    controlCpuUs: middle((round) => round.controlCpuUs),
    postgresCpuUs: middle((round) => round.postgresCpuUs),
    lagEvents: lags.length,
    lagP50Ms: percentile(lags, 0.5),
    lagP99Ms: percentile(lags, 0.99),
  };
}

/**
 * Publishes deliveries to paused endpoints, resumes the endpoints and waits for all outcomes. The rate counts from the first
 * arrival to the last one.
 */
async function drain(
  world: BenchWorld,
  webhooks: WebhookWorld,
  deliveries: number,
): Promise<{ readonly perSecond: number; readonly cpuUs: number; readonly postgresCpuUs: number }> {
  await webhooks.setStatus("paused");
  const before = await webhooks.countOf("delivered");
  await webhooks.publish(deliveries);
  await webhooks.until("pending", deliveries);
  await webhooks.arrived();
  const postgresPid = world.postgresPid() ?? 0;
  const [signerCpu, postgresCpu] = [cpuTimeUs(webhooks.signer.pid), familyCpuTimeUs(postgresPid)];
  await webhooks.setStatus("active");
  await webhooks.untilNonePending();
  const cpuUs = (cpuTimeUs(webhooks.signer.pid) - signerCpu) / deliveries;
  const postgresCpuUs = (familyCpuTimeUs(postgresPid) - postgresCpu) / deliveries;
  const times = (await webhooks.arrived()).map(([, atMs]) => atMs);
  const delivered = (await webhooks.countOf("delivered")) - before;
  if (delivered !== deliveries) throw new Error(`${delivered} of ${deliveries} deliveries are delivered.`);
  if (times.length !== deliveries) throw new Error(`${times.length} requests arrived for ${deliveries} deliveries.`);
  const elapsedMs = Math.max(...times) - Math.min(...times);
  return { perSecond: (deliveries / elapsedMs) * 1_000, cpuUs, postgresCpuUs };
}

/** The time from the acknowledgement of the event's commit to its request: relay, bus, signer and target. */
async function measureLags(webhooks: WebhookWorld, events: number): Promise<number[]> {
  const committedAtMs = new Map<number, number>();
  const [{ last }] = await webhooks.database<[{ last: number }]>`
    select coalesce(max(delivery_id), 0) as last from webhook_deliveries`;
  const before = await webhooks.countOf("delivered");
  for (let at = 0; at < events; at += 1) {
    const dueMs = performance.now() + 1_000 / LAG_EVENTS_PER_SECOND;
    const eventId = await webhooks.emit(at);
    committedAtMs.set(eventId, performance.timeOrigin + performance.now());
    await delay(Math.max(0, dueMs - performance.now()));
  }
  await webhooks.until("delivered", before + events);
  const arrivedAtMs = new Map((await webhooks.arrived()).map(([id, atMs]) => [id, atMs]));
  const rows = await webhooks.database<{ delivery_id: number; event_id: number }[]>`
    select delivery_id, event_id from webhook_deliveries where delivery_id > ${last}`;
  if (rows.length !== events) throw new Error(`${rows.length} deliveries for ${events} events.`);
  return rows.map(({ delivery_id: deliveryId, event_id: eventId }) => {
    const atMs = arrivedAtMs.get(deliveryId);
    if (atMs === undefined) throw new Error(`Delivery ${deliveryId} never arrived.`);
    return atMs - (committedAtMs.get(eventId) ?? Number.NaN);
  });
}

export function webhookResults(measurement: WebhookMeasurement): BenchResult[] {
  const ratio = measurement.perSecond / measurement.controlPerSecond;
  return [
    {
      name: `webhook deliveries/s to a TLS target (${measurement.connections} connections)`,
      measured: wholeNumber(measurement.perSecond),
      control: `bare undici loop: ${wholeNumber(measurement.controlPerSecond)}`,
      ratio: `${wholeNumber(ratio * 100)} %`,
      goal: "≥ 50 %",
      met: ratio >= 0.5,
    },
    {
      name: "CPU per webhook delivery (µs)",
      measured: `${wholeNumber(measurement.cpuUs)}, PostgreSQL ${wholeNumber(measurement.postgresCpuUs)}`,
      control: wholeNumber(measurement.controlCpuUs),
      ratio: "",
      goal: "",
      met: undefined,
    },
    {
      name: "event committed → webhook arrives, p50 (ms)",
      measured: oneDecimal(measurement.lagP50Ms),
      control: "",
      ratio: "",
      goal: "",
      met: undefined,
    },
    {
      name: "event committed → webhook arrives, p99 (ms)",
      measured: oneDecimal(measurement.lagP99Ms),
      control: "",
      ratio: "",
      goal: "≤ 1,000",
      met: measurement.lagP99Ms <= 1_000,
    },
  ];
}
