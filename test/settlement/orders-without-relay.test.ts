/** Orders while no relay runs: the settlement service notifies the station, and the relay delivers later. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openOrder, voidOrder } from "../../services/bus/messages/orders.ts";
import { call } from "../../services/bus/operation.ts";
import { stationKey } from "../../services/db/outbox.ts";
import { type RelayFixture, startRelayFixture, stationRow } from "../relay/relay-fixture.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { cashierOf } from "./settlement-world.ts";

let fixture: RelayFixture;
let host: Awaited<ReturnType<RelayFixture["startStations"]>>;
beforeAll(async () => {
  fixture = await startRelayFixture();
  host = await fixture.startStations();
  await fixture.startAnnouncers();
});
afterAll(() => fixture.stop());

const LINE = { name: "Coffee", quantity: 1, unitAmountMinor: "350" };

async function openStation(): Promise<{ stationId: number; organizationId: number }> {
  const [row] = await fixture.sql<{ organization_id: number; station_id: number }[]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o returning organization_id, filial_id)
    insert into stations (organization_id, filial_id, name, currency)
    select organization_id, filial_id, 'Counter', 'EUR' from f returning organization_id, station_id`;
  if (row === undefined) throw new Error("no station");
  return { stationId: row.station_id, organizationId: row.organization_id };
}

test("an order is voided and another one opened: the station shows the other one, also after the relay is back", async () => {
  const { stationId, organizationId } = await openStation();
  const first = await fixture.startRelay();
  await fixture.write(stationRow(stationId, 1));
  await fixture.delivered();
  await first.stop();
  const caller = cashierOf(organizationId, 7);
  const shown = async (): Promise<number | undefined> => {
    const commit = (await fixture.commits(stationId)).at(-1);
    return commit?.state.order?.orderId;
  };

  const request = { caller, stationId, lines: [LINE], idempotencyKey: "first" };
  const opened = await call(fixture.bus.nc, openOrder, request);
  expect(opened.barrier.isUndelivered).toBeUndefined();
  expect(await shown()).toBe(opened.order.orderId);
  const voided = await call(fixture.bus.nc, voidOrder, { caller, orderId: opened.order.orderId });
  expect(voided.barrier).toEqual({
    positions: { [STATION_LOG.name]: (await fixture.commits(stationId)).at(-1)?.sequence },
  });
  expect(await shown()).toBeUndefined();
  // The repeated request gets its first answer, and the station does not show the voided order again.
  expect((await call(fixture.bus.nc, openOrder, request)).order).toEqual(opened.order);
  expect(await shown()).toBeUndefined();
  const second = await call(fixture.bus.nc, openOrder, { caller, stationId, lines: [LINE], idempotencyKey: "second" });
  expect(await shown()).toBe(second.order.orderId);
  expect(await fixture.outstanding()).toBe(3);

  const before = (await fixture.commits(stationId)).at(-1)?.state;
  const relay = await fixture.startRelay();
  await fixture.flush(stationKey(stationId));
  await fixture.delivered();
  const after = (await fixture.commits(stationId)).at(-1)?.state;
  expect(after?.order).toEqual(before?.order);
  expect(after?.waitingOrders).toEqual([]);
  await relay.stop();
});

test("no host runs: the order is stored, and the answer shows that it is not delivered", async () => {
  const { stationId, organizationId } = await openStation();
  await host.stop();
  const caller = cashierOf(organizationId, 7);
  const { order, barrier } = await call(fixture.bus.nc, openOrder, { caller, stationId, lines: [LINE] });
  expect(order.status).toBe("open");
  expect(barrier).toEqual({ positions: {}, isUndelivered: true });
});
