/**
 * Measures the display poll, with 200 and 304 mixed and with authentication and throttle, against a control: a bare handler
 * that returns the same bytes. Rounds alternate between the two. The median round counts, because other work shares the
 * machine.
 */

import { median, percentile } from "../support/percentile.ts";
import { type BenchResult, oneDecimal, wholeNumber } from "./bench-result.ts";
import type { BenchProcess, BenchWorld } from "./bench-world.ts";
import { cpuTimeUs } from "./cpu-time.ts";
import { type LoadResult, pollRequest, runLoad } from "./load/http-load.ts";
import type { PopulatedDevice } from "./population.ts";

export const DISPLAY_PATH = "/api/payments/v1/devices/display/";
const CONNECTIONS = 32;

export interface PollRound {
  readonly cpuUsPerRequest: number;
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

/** Measures one run against a server. Throws when an answer is neither 200 nor 304. */
export async function measureRound(port: number, pid: number, requests: readonly Buffer[]): Promise<PollRound> {
  const before = cpuTimeUs(pid);
  const result = await runLoad({ port, connections: CONNECTIONS, requests });
  const cpuUs = cpuTimeUs(pid) - before;
  requirePollStatuses(result);
  return {
    cpuUsPerRequest: cpuUs / result.requests,
    requestsPerSecond: (result.requests / result.elapsedMs) * 1_000,
    p50Us: percentile(result.latenciesUs, 0.5),
    p99Us: percentile(result.latenciesUs, 0.99),
  };
}

function requirePollStatuses(result: LoadResult): void {
  const others = Object.keys(result.statuses).filter((status) => status !== "200" && status !== "304");
  if (others.length > 0) throw new Error(`Not all polls were answered 200 or 304: ${JSON.stringify(result.statuses)}.`);
}

/** Polls each device once without a condition, and learns its ETag. */
export async function learnEtags(port: number, devices: readonly PopulatedDevice[]): Promise<readonly string[]> {
  const etags: string[] = [];
  const requests = devices.map((device) => pollRequest(DISPLAY_PATH, device.credential));
  const onHead = (index: number, head: string): void => {
    etags[index] = /\r\netag: ([^\r]+)/i.exec(head)?.[1] ?? "";
  };
  requirePollStatuses(await runLoad({ port, connections: CONNECTIONS, requests, onHead }));
  return etags;
}

/** Every second poll has an ETag and gets 304, like the poll of a display whose station does not change. */
export function mixedRequests(devices: readonly PopulatedDevice[], etags: readonly string[], count: number): Buffer[] {
  return Array.from({ length: count }, (_, index) => {
    const at = index % devices.length;
    const credential = devices[at]?.credential ?? "";
    return pollRequest(
      DISPLAY_PATH,
      credential,
      (index + Math.floor(index / devices.length)) % 2 === 0 ? etags[at] : undefined,
    );
  });
}

/** Starts the control, which returns the bytes that the gateway answered to one device. */
export async function startControl(
  world: BenchWorld,
  gatewayPort: number,
  device: PopulatedDevice,
  port: number,
): Promise<BenchProcess> {
  const url = `http://127.0.0.1:${gatewayPort}${DISPLAY_PATH}`;
  const fresh = await fetch(url, { headers: { authorization: `Bearer ${device.credential}` } });
  const etag = fresh.headers.get("etag") ?? "";
  const notModified = await fetch(url, {
    headers: { authorization: `Bearer ${device.credential}`, "if-none-match": etag },
  });
  const addedByServer = new Set([
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "transfer-encoding",
    "uwebsockets",
  ]);
  const headersOf = (response: Response): [string, string][] =>
    [...response.headers].filter(([name]) => !addedByServer.has(name));
  const answer = {
    path: DISPLAY_PATH,
    headers: headersOf(fresh),
    body: await fresh.text(),
    notModifiedHeaders: headersOf(notModified),
  };
  return world.startProcess("control", "test/bench/load/control-poll-server.ts", [
    JSON.stringify(answer),
    String(port),
  ]);
}

export interface PollPlan {
  readonly world: BenchWorld;
  readonly gateway: { readonly pid: number; readonly port: number };
  readonly control: { readonly pid: number; readonly port: number };
  readonly devices: readonly PopulatedDevice[];
  readonly rounds: number;
  readonly requestsPerRound: number;
}

export interface PollMeasurement {
  readonly gateway: PollRound;
  readonly control: PollRound;
}

export async function measurePolls(plan: PollPlan): Promise<PollMeasurement> {
  const etags = await learnEtags(plan.gateway.port, plan.devices);
  const requests = mixedRequests(plan.devices, etags, plan.requestsPerRound);
  // The first round of each server is a warm-up, in which the engine compiles the code. Its results do not count.
  await measureRound(plan.control.port, plan.control.pid, requests);
  await measureRound(plan.gateway.port, plan.gateway.pid, requests);
  const gateway: PollRound[] = [];
  const control: PollRound[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    control.push(await measureRound(plan.control.port, plan.control.pid, requests));
    gateway.push(await measureRound(plan.gateway.port, plan.gateway.pid, requests));
  }
  return { gateway: medianRound(gateway), control: medianRound(control) };
}

export function medianRound(rounds: readonly PollRound[]): PollRound {
  const of = (pick: (round: PollRound) => number): number => median(rounds.map(pick));
  return {
    cpuUsPerRequest: of((round) => round.cpuUsPerRequest),
    requestsPerSecond: of((round) => round.requestsPerSecond),
    p50Us: of((round) => round.p50Us),
    p99Us: of((round) => round.p99Us),
  };
}

export function pollResults({ gateway, control }: PollMeasurement): BenchResult[] {
  const cpu = gateway.cpuUsPerRequest / control.cpuUsPerRequest;
  const p99 = gateway.p99Us / control.p99Us;
  return [
    {
      name: "display poll, CPU per request (µs)",
      measured: oneDecimal(gateway.cpuUsPerRequest),
      control: oneDecimal(control.cpuUsPerRequest),
      ratio: `${cpu.toFixed(2)} ×`,
      goal: "≤ 1.25 ×",
      met: cpu <= 1.25,
    },
    {
      name: "display poll, p99 (µs)",
      measured: wholeNumber(gateway.p99Us),
      control: wholeNumber(control.p99Us),
      ratio: `${p99.toFixed(2)} ×`,
      goal: "≤ 2 ×",
      met: p99 <= 2,
    },
    {
      name: "display poll, p50 (µs)",
      measured: wholeNumber(gateway.p50Us),
      control: wholeNumber(control.p50Us),
      ratio: `${(gateway.p50Us / control.p50Us).toFixed(2)} ×`,
      goal: "",
      met: undefined,
    },
    {
      name: "display polls per second",
      measured: wholeNumber(gateway.requestsPerSecond),
      control: wholeNumber(control.requestsPerSecond),
      ratio: `${(gateway.requestsPerSecond / control.requestsPerSecond).toFixed(2)} ×`,
      goal: "",
      met: undefined,
    },
  ];
}
