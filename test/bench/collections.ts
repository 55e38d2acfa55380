/** Collections of the benches: stations with a companion and open orders, and the four commands that collect one order. */
import type { Actor } from "../../machines/actor.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { registerDevice } from "../../services/bus/messages/devices.ts";
import { listFilials } from "../../services/bus/messages/filials.ts";
import { heartbeatHeaders } from "../../services/bus/messages/heartbeat.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import type { RequestedCommand, StationResponse } from "../../services/bus/messages/station-commands.ts";
import { createStation } from "../../services/bus/messages/stations.ts";
import { call } from "../../services/bus/operation.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { heartbeatSubject } from "../../services/bus/subjects.ts";
import type { BenchWorld } from "./bench-world.ts";

export interface BenchStation {
  readonly stationId: number;
  readonly deviceId: number;
  readonly orderIds: readonly number[];
}

/** A collection is four commands and five appends: an attestation commits `settling` and then `succeeded`. */
export const COMMANDS_PER_COLLECTION = 4;
export const APPENDS_PER_COLLECTION = 5;
/** Makes stations whose lease the caller holds. `ordersAt` returns how many orders to open at the station of an index. */
export async function makeStations(
  { bus }: Pick<BenchWorld, "bus">,
  caller: Caller,
  plan: { readonly stations: number; readonly ordersAt: (index: number) => number },
): Promise<BenchStation[]> {
  const { nc, js } = bus;
  const { filials } = await call(nc, listFilials, { caller });
  const filialId = filials[0]?.filialId ?? 0;
  return Promise.all(
    Array.from({ length: plan.stations }, async (_, index) => {
      const made = await call(nc, createStation, { caller, filialId, name: `Bench ${index}`, currency: "EUR" }, 60_000);
      const { stationId } = made.station;
      const device = {
        caller,
        stationId,
        name: "Companion",
        kind: "smart_pos_companion" as const,
        handoffTarget: "bench://",
      };
      const { deviceId } = (await call(nc, registerDevice, device, 60_000)).device;
      const actor = { kind: "registry", id: 0 } as const;
      const capabilities = ["handoff_present", "outcome_report"] as const;
      const description = {
        deviceId,
        name: "Companion",
        kind: "smart_pos_companion",
        capabilities,
        status: "active",
        handoffTarget: "bench://",
        revision: 1_000,
      } as const;
      await askStation(nc, stationId, {
        commandId: `bench:activate:${deviceId}`,
        actor,
        command: { type: "device_put", device: description },
      });
      const heartbeat = { atMs: Date.now(), summary: {} };
      const headers = heartbeatHeaders(heartbeat);
      await js.publish(heartbeatSubject(stationId, deviceId), JSON.stringify(heartbeat), { headers });
      const orderIds: number[] = [];
      const lines = [{ name: "Soup", quantity: 2, unitAmountMinor: "625" }];
      for (let n = 0; n < plan.ordersAt(index); n += 1) {
        orderIds.push((await call(nc, openOrder, { caller, stationId, lines }, 60_000)).order.orderId);
      }
      await ask(bus, caller, stationId, `bench:lease:${stationId}`, { type: "lease_acquire", lifetimeMs: 3_600_000 });
      return { stationId, deviceId, orderIds };
    }),
  );
}

/** Throws when the station refuses. */
export async function ask(
  { nc }: BenchWorld["bus"],
  who: Caller | number,
  stationId: number,
  commandId: string,
  command: RequestedCommand,
): Promise<StationResponse> {
  const actor: Actor =
    typeof who === "number" ? { kind: "device", id: who } : { kind: "cashier", id: who.userId, name: who.name };
  const response = await askStation(nc, stationId, { commandId, actor, command });
  if (!response.reply.ok) throw new Error(`${command.type} was refused: ${JSON.stringify(response.reply)}`);
  return response;
}

/** The durations of each command, in microseconds. */
export type Timings = Record<"create" | "fetch" | "report" | "attest", number[]>;

export async function collect(
  bus: BenchWorld["bus"],
  caller: Caller,
  station: BenchStation,
  orderId: number,
  timings?: Timings,
): Promise<void> {
  const { stationId, deviceId } = station;
  const timed = async (name: keyof Timings, work: Promise<StationResponse>): Promise<StationResponse> => {
    const startedAtMs = performance.now();
    const response = await work;
    timings?.[name].push((performance.now() - startedAtMs) * 1_000);
    return response;
  };
  const id = `${stationId}:${orderId}`;
  const created = await timed(
    "create",
    ask(bus, caller, stationId, `c:${id}`, { type: "intent_create", route: "smart_pos", orderId }),
  );
  const intentId = created.intent?.intentId ?? 0;
  await timed("fetch", ask(bus, deviceId, stationId, `p:${id}`, { type: "intent_present", intentId }));
  const report = { outcome: "reported_success", providerReference: `SLIP-${orderId}`, providerCode: "00" } as const;
  await timed("report", ask(bus, deviceId, stationId, `r:${id}`, { type: "intent_report", intentId, ...report }));
  await timed("attest", ask(bus, caller, stationId, `a:${id}`, { type: "intent_attest", intentId }));
}

/** Collects the orders from `from` on, at all stations at once. */
export async function collectAll(
  bus: BenchWorld["bus"],
  caller: Caller,
  stations: readonly BenchStation[],
  from: number,
  count: number,
): Promise<void> {
  await Promise.all(
    stations.map(async (station) => {
      for (const orderId of station.orderIds.slice(from, from + count)) await collect(bus, caller, station, orderId);
    }),
  );
}
