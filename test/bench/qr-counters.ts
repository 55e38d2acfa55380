/** Counters that collect by dynamic QR: a provider config whose secret the bench knows, and stations with an order each. */
import { setTimeout as delay } from "node:timers/promises";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { registerDevice } from "../../services/bus/messages/devices.ts";
import { enrollDevice, issueEnrollmentCode } from "../../services/bus/messages/enrollment-codes.ts";
import { listFilials } from "../../services/bus/messages/filials.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import { createProviderConfig } from "../../services/bus/messages/provider-configs.ts";
import type { RequestedCommand, StationResponse } from "../../services/bus/messages/station-commands.ts";
import { createStation } from "../../services/bus/messages/stations.ts";
import { call } from "../../services/bus/operation.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { signature } from "../support/emvco-settings.ts";
import type { BenchWorld } from "./bench-world.ts";
import type { DisplayWatch } from "./display-watch.ts";
import type { ShownDisplay } from "./load/display-probe.ts";
import { callbackRequest } from "./load/http-load.ts";

export interface Counters {
  readonly configId: number;
  readonly secret: string;
  readonly stations: readonly Counter[];
}

export interface Counter {
  readonly stationId: number;
  /** The credential of its display. */
  readonly credential: string;
}

/** A callback which asserts that the buyer has paid the order that a display shows. */
export interface PaidCallback {
  readonly stationId: number;
  readonly orderDisplayNumber: number;
  readonly request: Buffer;
}

export const CALLBACK_SECRET = "the-callback-secret-of-the-bench";
const MERCHANT = {
  merchant_account: { tag: "26", guid: "com.example.bench", merchant_id: "MERCHANT-1" },
  category_code: "5812",
  country: "DE",
  merchant_name: "Bench",
  merchant_city: "Berlin",
};
/** Stations that the bench makes at the same time. */
const MADE_AT_ONCE = 16;
/** The relay publishes a new provider config to its stations within seconds; until then the route is not offered. */
const PROVIDER_KNOWN_MS = 60_000;
const POLL_INTERVAL_MS = 200;
const CALL_TIMEOUT_MS = 60_000;

export async function makeCounters(world: BenchWorld, caller: Caller, count: number): Promise<Counters> {
  const { nc } = world.bus;
  const { filials } = await call(nc, listFilials, { caller });
  const filialId = filials[0]?.filialId ?? 0;
  const request = { caller, filialId, kind: "emvco_generic", mode: "test", name: "Bench", settings: MERCHANT } as const;
  const secrets = { callback_secret: CALLBACK_SECRET };
  const { config } = await call(nc, createProviderConfig, { ...request, secrets }, CALL_TIMEOUT_MS);
  const stations: Counter[] = [];
  for (let made = 0; made < count; made += MADE_AT_ONCE) {
    const some = Math.min(MADE_AT_ONCE, count - made);
    stations.push(...(await Promise.all(Array.from({ length: some }, () => makeCounter(world, caller, filialId)))));
  }
  return { configId: config.configId, secret: CALLBACK_SECRET, stations };
}

async function makeCounter(world: BenchWorld, caller: Caller, filialId: number): Promise<Counter> {
  const { nc } = world.bus;
  const { station } = await call(
    nc,
    createStation,
    { caller, filialId, name: "Bench", currency: "EUR" },
    CALL_TIMEOUT_MS,
  );
  const { stationId } = station;
  const display = { caller, stationId, name: "Display", kind: "customer_display" } as const;
  const { device } = await call(nc, registerDevice, display, CALL_TIMEOUT_MS);
  const { code } = await call(nc, issueEnrollmentCode, { caller, deviceId: device.deviceId }, CALL_TIMEOUT_MS);
  const { credential } = await call(nc, enrollDevice, { address: "127.0.0.1", code }, CALL_TIMEOUT_MS);
  await ask(world, caller, stationId, { type: "lease_acquire", lifetimeMs: 3_600_000 });
  return { stationId, credential };
}

let commands = 0;

async function ask(
  { bus }: BenchWorld,
  caller: Caller,
  stationId: number,
  command: RequestedCommand,
): Promise<StationResponse> {
  commands += 1;
  const actor = { kind: "cashier", id: caller.userId, name: caller.name } as const;
  return await askStation(bus.nc, stationId, { commandId: `bench:${commands}`, actor, command });
}

export interface QrPlan {
  readonly world: BenchWorld;
  readonly caller: Caller;
  readonly counters: Counters;
  readonly watch: DisplayWatch;
}

/** Opens an order, collects it by QR, waits until the display shows the QR, and reads the payload as a guest's phone does. */
export async function presentQr(plan: QrPlan, { stationId }: Counter): Promise<PaidCallback> {
  const { world, caller, counters, watch } = plan;
  const lines = [{ name: "Soup", quantity: 2, unitAmountMinor: "625" }];
  const { order } = await call(world.bus.nc, openOrder, { caller, stationId, lines }, CALL_TIMEOUT_MS);
  const shown = watch.next(stationId, "qr", order.orderDisplayNumber);
  const startedAtMs = performance.now();
  for (;;) {
    const command = { type: "intent_create", route: "dynamic_qr", orderId: order.orderId } as const;
    const { reply } = await ask(world, caller, stationId, command);
    if (reply.ok) break;
    const isEarly = reply.code === "route_not_offered" && performance.now() - startedAtMs < PROVIDER_KNOWN_MS;
    if (!isEarly) throw new Error(`A QR collection was refused: ${JSON.stringify(reply)}`);
    await delay(POLL_INTERVAL_MS);
  }
  return paidCallback(counters, await shown);
}

let events = 0;

function paidCallback({ configId, secret }: Counters, shown: ShownDisplay): PaidCallback {
  const { stationId, orderDisplayNumber, amount, qrPayload } = shown;
  events += 1;
  const data = {
    reference: referenceIn(qrPayload),
    transaction_id: `TX-${events}`,
    merchant_id: MERCHANT.merchant_account.merchant_id,
    amount,
    currency: "EUR",
  };
  const body = JSON.stringify({ id: `evt-${events}`, type: "payment.paid", data });
  const request = callbackRequest(callbackPath(configId), signature(body, secret), body);
  return { stationId, orderDisplayNumber, request };
}

const callbackPath = (configId: number): string => `/api/providers/v1/${configId}/callback/`;

/** The reference label: data object 05 within 62 of the EMVCo payload. */
function referenceIn(payload: string): string {
  const reference = valueOf(valueOf(payload, "62"), "05");
  if (reference === "") throw new Error(`There is no reference in the QR payload ${payload}.`);
  return reference;
}

function valueOf(payload: string, id: string): string {
  for (let at = 0; at + 4 <= payload.length; ) {
    const length = Number(payload.slice(at + 2, at + 4));
    if (payload.slice(at, at + 2) === id) return payload.slice(at + 4, at + 4 + length);
    at += 4 + length;
  }
  return "";
}

/** The same callback for the control: same bytes, another path. */
export function forControl({ request }: PaidCallback, configId: number): Buffer {
  return Buffer.from(request.toString("utf8").replace(callbackPath(configId), "/callback/"));
}
