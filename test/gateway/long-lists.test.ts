/**
 * Lists that the gateway makes from the replica's stations. One thread answers all clients, so it decodes each station once
 * per list. An answer is no longer than what the gateway stores for a client that reads slowly.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { type Device, listDevices } from "../../services/bus/messages/devices.ts";
import { listOrders, type Order } from "../../services/bus/messages/orders.ts";
import { listStations, type Station } from "../../services/bus/messages/stations.ts";
import { serve } from "../../services/bus/operation.ts";
import { send } from "../support/http.ts";
import { type GatewayWorld, SILENT, startGatewayWorld, type TestStation } from "./gateway-world.ts";

const STATIONS = 9;
/** If the gateway decoded the station for each of these entries, every other client would wait. */
const ENTRIES = 300;
/** The longest text that a report may have. */
const LONG_TEXT = "7".repeat(15_000);

let world: GatewayWorld;
let owner: string;
let cashier: string;
const stations: TestStation[] = [];
beforeAll(async () => {
  world = await startGatewayWorld();
  for (let stationId = 1; stationId <= STATIONS; stationId += 1) stations.push(await world.openStation(stationId));
  for (const station of stations) await collect(station);
  owner = await world.session({ role: "owner", permissions: ["organization.manage"] });
  cashier = await world.session();
});
afterAll(() => world.stop());

/** A collection with long evidence: the second report inherits the reference of the first one. */
async function collect(station: TestStation): Promise<void> {
  const intentId = await station.handOver();
  const actor = { kind: "device", id: station.companionId } as const;
  for (const [outcome, providerReference, providerCode] of [
    ["reported_success", LONG_TEXT, ""],
    ["reported_declined", "", LONG_TEXT],
  ] as const) {
    await station.run({ type: "intent_report", intentId, outcome, providerReference, providerCode }, { actor });
  }
}

interface Page {
  readonly orders: readonly { readonly order_id: number }[];
  readonly devices: readonly unknown[];
  readonly active_intents: readonly { readonly station_id: number }[];
  readonly has_more: boolean;
  readonly through_id: number;
}
const read = (path: string, token: string) => send<Page>(world.baseUrl, "GET", path, { token });

const responder = (queue: string) => ({ nc: world.bus.nc, log: SILENT, queue, claim: async () => true });

const orderOf = (orderId: number, lines: Order["lines"] = []): Order => ({
  orderId,
  orderDisplayNumber: orderId,
  stationId: 1,
  status: "open",
  revision: 1,
  currency: "EUR",
  totalMinor: "0",
  lines,
  transaction: null,
  openedAtMs: Date.now(),
});

const deviceOf = (deviceId: number): Device => ({
  deviceId,
  stationId: 1,
  name: "Display",
  kind: "customer_display",
  capabilities: [],
  status: "revoked",
  handoffTarget: "",
  createdAtMs: Date.now(),
  enrolledAtMs: null,
});

const stationOf = ({ stationId }: TestStation): Station => ({
  stationId,
  filialId: 1,
  name: `Counter ${stationId}`,
  currency: "EUR",
  status: "active",
  sandbox: false,
  createdAtMs: Date.now(),
});

/** Counts how many commits of stations the gateway decodes during the work. */
async function decodesDuring(work: () => Promise<void>): Promise<number> {
  const parse = vi.spyOn(JSON, "parse");
  try {
    await work();
    return parse.mock.calls.filter(([text]) => text.startsWith('{"machineVersion"')).length;
  } finally {
    parse.mockRestore();
  }
}

describe("an owner's list with many entries of one station", () => {
  it("orders: the gateway decodes the station once", async () => {
    const orders = Array.from({ length: ENTRIES }, (_, index) => orderOf(ENTRIES - index));
    const served = serve(responder("settlement"), listOrders, async () => ({ orders, hasMore: false }));
    await world.bus.nc.flush();
    const decodes = await decodesDuring(async () => {
      const { status, body } = await read("/api/backoffice/v1/orders/?limit=500", owner);
      expect(status).toBe(200);
      expect(body.orders).toHaveLength(ENTRIES);
    });
    served.unsubscribe();
    expect(decodes).toBe(1);
  });

  it("devices: the gateway decodes the station once", async () => {
    const devices = Array.from({ length: ENTRIES }, (_, index) => deviceOf(1_000 + index));
    const served = serve(responder("registry"), listDevices, async () => ({ devices, hasMore: false }));
    await world.bus.nc.flush();
    const decodes = await decodesDuring(async () => {
      const { status, body } = await read("/api/backoffice/v1/devices/?limit=500", owner);
      expect(status).toBe(200);
      expect(body.devices).toHaveLength(ENTRIES);
    });
    served.unsubscribe();
    expect(decodes).toBe(1);
  });
});

describe("the length of a page", () => {
  it("active collections with long evidence: the page ends before it is too long, and the next page has the others", async () => {
    const served = serve(responder("registry"), listStations, async ({ sinceId }) => ({
      stations: stations.filter(({ stationId }) => stationId > sinceId).map(stationOf),
      hasMore: false,
    }));
    await world.bus.nc.flush();
    const seen: number[] = [];
    let pages = 0;
    for (let sinceId = 0, more = true; more; pages += 1) {
      const path = `/api/backoffice/v1/active-intents/?limit=500&since_id=${sinceId}`;
      const { status, body } = await read(path, owner);
      expect(status).toBe(200);
      expect(Buffer.byteLength(JSON.stringify(body.active_intents))).toBeLessThanOrEqual(BOUNDS.listedBytes);
      seen.push(...body.active_intents.map((each) => each.station_id));
      ({ has_more: more, through_id: sinceId } = body);
    }
    served.unsubscribe();
    expect(seen).toEqual(stations.map(({ stationId }) => stationId));
    expect(pages).toBeGreaterThan(1);
  });

  it("orders, whose lines are longer in JSON of the API than on the bus: the page ends before it is too long", async () => {
    const line = { name: "a", quantity: 1, unitAmountMinor: "0" };
    const lines = Array.from({ length: BOUNDS.orderLines }, () => line);
    const all: Order[] = [];
    for (let bytes = 0; ; all.push(orderOf(1_000 - all.length, lines))) {
      bytes += Buffer.byteLength(JSON.stringify(orderOf(1_000, lines)));
      if (bytes > BOUNDS.listedBytes) break;
    }
    const served = serve(responder("settlement"), listOrders, async ({ beforeId = 2_000 }) => ({
      orders: all.filter(({ orderId }) => orderId < beforeId),
      hasMore: false,
    }));
    await world.bus.nc.flush();
    for (const [path, token] of [
      ["/api/backoffice/v1/orders/", owner],
      ["/api/cashier/v1/stations/1/orders/", cashier],
    ] as const) {
      const seen: number[] = [];
      for (let more = true; more; ) {
        const before = seen.length === 0 ? "" : `&before_id=${seen.at(-1)}`;
        const { status, body } = await read(`${path}?limit=500${before}`, token);
        expect(status).toBe(200);
        expect(Buffer.byteLength(JSON.stringify(body.orders))).toBeLessThanOrEqual(BOUNDS.listedBytes);
        seen.push(...body.orders.map((order) => order.order_id));
        more = body.has_more;
      }
      expect(seen).toEqual(all.map(({ orderId }) => orderId));
    }
    served.unsubscribe();
  });
});
