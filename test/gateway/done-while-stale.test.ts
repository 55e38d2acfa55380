/**
 * The gateway loses its feed. A change that a service does meanwhile is still reported as done (design §2.2); a read without
 * the order's station is not answered.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { assignmentRoutes } from "../../gateway/api/device/assignment.ts";
import { selfRoutes } from "../../gateway/api/device/self.ts";
import { ApiError, type DeviceContext, type DeviceHandler } from "../../gateway/http/handler-context.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { type Device, moveDevice } from "../../services/bus/messages/devices.ts";
import { changeOrder, getOrder, listOrders, type Order, voidOrder } from "../../services/bus/messages/orders.ts";
import { serve } from "../../services/bus/operation.ts";
import { type Refused, send } from "../support/http.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { type GatewayWorld, SILENT, startGatewayWorld } from "./gateway-world.ts";

const STATION_ID = 1;
const ORDER: Order = {
  orderId: 7,
  orderDisplayNumber: 7,
  stationId: STATION_ID,
  status: "open",
  revision: 1,
  currency: "EUR",
  totalMinor: "100",
  lines: [],
  transaction: null,
  openedAtMs: Date.now(),
};
const VOIDED: Order = { ...ORDER, status: "voided" };
const DEVICE: Device = {
  deviceId: 11,
  stationId: STATION_ID,
  name: "Display",
  kind: "customer_display",
  capabilities: [],
  status: "suspended",
  handoffTarget: "",
  createdAtMs: Date.now(),
  enrolledAtMs: null,
};
/** What the station answers when it has presented an intent to a device. */
const PRESENTED = {
  intentId: 7,
  displayNumber: 3,
  orderDisplayNumber: 7,
  stationName: "Counter 1",
  amountMinor: "2500",
  currency: "EUR",
  status: "presented",
  handoffTarget: "",
  expiresAtMs: 2_000,
};

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
  await world.openStation(STATION_ID);
});
afterEach(async () => {
  await ensureStreams(world.bus, { replicas: 1, logs: 1 });
  await expect.poll(() => isStale(), { timeout: 10_000 }).toBe(false);
});
afterAll(() => world.stop());

const isStale = (): boolean => {
  const { replicas } = world.gateway;
  return !replicas.isStationFresh(STATION_ID, replicas.nowMs());
};

/** Deletes the station log. The test calls it while the service does the change. */
async function loseFeed(): Promise<void> {
  await world.bus.jsm.streams.delete(STATION_LOG.name);
  await expect.poll(isStale, { timeout: 10_000 }).toBe(true);
}

const deps = (queue: string) => ({ nc: world.bus.nc, log: SILENT, queue, claim: async () => true });

describe("a change during which the gateway becomes stale", () => {
  it("an order's new lines and its void: 200 with the order", async () => {
    const token = await world.session();
    const served = [
      serve(deps("settlement"), getOrder, async () => ({ order: ORDER })),
      serve(deps("settlement"), changeOrder, async () => {
        await loseFeed();
        return { order: { ...ORDER, revision: 2 }, barrier: { positions: {} } };
      }),
      serve(deps("settlement"), voidOrder, async () => ({ order: VOIDED, barrier: { positions: {} } })),
    ];
    await world.bus.nc.flush();
    const json = { lines: [{ name: "Tea", quantity: 1, unit_amount: "1.00" }] };
    const changed = await send(world.baseUrl, "PUT", "/api/cashier/v1/orders/7/lines/", { token, json });
    expect(changed).toMatchObject({ status: 200, body: { order_id: 7, revision: 2, unclear_collections: [] } });
    const voided = await send(world.baseUrl, "POST", "/api/cashier/v1/orders/7/void/", { token });
    expect(voided).toMatchObject({ status: 200, body: { status: "voided" } });
    for (const one of served) one.unsubscribe();
  });

  it("a device's suspension: 200 with the device", async () => {
    const token = await world.session({ role: "owner", permissions: ["organization.manage"] });
    const served = serve(deps("registry"), moveDevice, async () => {
      await loseFeed();
      return { device: DEVICE, barrier: { positions: {} } };
    });
    await world.bus.nc.flush();
    const suspended = await send(world.baseUrl, "POST", "/api/backoffice/v1/devices/11/suspend/", { token });
    expect(suspended).toMatchObject({ status: 200, body: { device_id: 11, status: "suspended", liveness: null } });
    served.unsubscribe();
  });
});

describe("an order while the bus has lost its station", () => {
  it("a read: 503 `replica_stale`, because the order's unclear collections are unknown", async () => {
    const stationId = 2;
    await world.openStation(stationId);
    const order = { ...ORDER, stationId };
    const cashier = await world.session();
    const owner = await world.session({ role: "owner", permissions: ["organization.manage"] });
    const served = [
      serve(deps("settlement"), getOrder, async () => ({ order })),
      serve(deps("settlement"), listOrders, async () => ({ orders: [order], hasMore: false })),
    ];
    await world.bus.nc.flush();
    const reads = [
      ["/api/cashier/v1/orders/7/", cashier],
      ["/api/backoffice/v1/orders/7/", owner],
      ["/api/backoffice/v1/orders/", owner],
    ] as const;
    const answers = () =>
      Promise.all(
        reads.map(async ([path, token]) => {
          const { status, body } = await send<Refused>(world.baseUrl, "GET", path, { token });
          return [path, status, body.code];
        }),
      );
    expect(await answers()).toEqual(reads.map(([path]) => [path, 200, undefined]));
    await loseFeed();
    await ensureStreams(world.bus, { replicas: 1, logs: 1 });
    // The replica has the whole new log, which is empty.
    await expect.poll(isStale, { timeout: 10_000 }).toBe(false);
    expect(await answers()).toEqual(reads.map(([path]) => [path, 503, "replica_stale"]));
    for (const one of served) one.unsubscribe();
  });
});

describe("a device's request during which the gateway becomes stale", () => {
  /** Runs the handler of an operation. The replica is fresh until the service has done its part. */
  async function answerTo(operation: string) {
    let isDone = false;
    const done = async () => {
      isDone = true;
      return { intent: PRESENTED };
    };
    const handlerDeps = {
      bus: { heartbeat: done, command: done },
      nowMs: () => 1_000,
      deviceView() {
        if (isDone) throw new ApiError("replica_stale");
        return { head: '{"server_time":"', etag: "", presents: 7 };
      },
    };
    const rows = [...assignmentRoutes, ...selfRoutes];
    const row = rows.find((route) => route.operation === operation) ?? expect.unreachable();
    const context = { deps: handlerDeps, device: { deviceId: 12, stationId: STATION_ID }, body: {} };
    const reply = await (row.handler as DeviceHandler)(context as unknown as DeviceContext);
    return { status: reply.status, body: JSON.parse(String(reply.ready)) as unknown };
  }

  it("the fetch that presents an intent: 200 with the intent", async () => {
    const assignment = { intent_id: 7, status: "presented", amount: "25.00" };
    expect(await answerTo("fetchAssignment")).toMatchObject({ status: 200, body: { assignment } });
  });

  it("a heartbeat: 200 with the snapshot", async () => {
    const body = { server_time: "1970-01-01T00:00:01.000Z" };
    expect(await answerTo("sendHeartbeat")).toEqual({ status: 200, body });
  });
});
