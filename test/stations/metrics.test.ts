/** The metrics of an actor host about failures. `test/gateway/metrics.test.ts` tests its metrics about a collection. */
import type { Registry } from "prom-client";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { metricSum, parseSeries } from "../support/scrape.ts";
import { eventually } from "../support/wait-for.ts";
import { CASHIER, deviceActor, type StationWorld, startStationWorld } from "./station-world.ts";

let world: StationWorld;
beforeAll(async () => {
  world = await startStationWorld({ money: true });
  return () => world.stop();
});
afterEach(() => world.stopHosts());

async function read(metrics: Registry, name: string, labels: Record<string, string> = {}): Promise<number> {
  return metricSum(parseSeries(await metrics.metrics()), name, labels) ?? 0;
}

const renew = (stationId: number, commandId: string): Promise<unknown> => {
  const request = JSON.stringify({ commandId, actor: CASHIER, command: { type: "lease_renew" } });
  return world.bus.nc.request(stationCommandSubject(stationId), request, { timeout: 15_000 });
};

describe("an actor host counts", () => {
  it("an append with unknown outcome, and its command once", async () => {
    const { proxy, metrics } = await world.startHostBehindProxy();
    const stationId = await world.openStation();
    const before = await read(metrics, "stations_commands_total", { type: "lease_renew" });
    const lost = proxy.loseNext(`"stream":"STATION_LOG_0"`);
    const asked = renew(stationId, "test:unknown");
    await lost;
    await asked;
    expect(await read(metrics, "stations_append_unknown_outcomes_total")).toBeGreaterThanOrEqual(1);
    const accepted = { type: "lease_renew", result: "accepted" };
    expect((await read(metrics, "stations_commands_total", accepted)) - before).toBe(1);
  });

  it("appends that conflict with a commit of another host", async () => {
    const hosts = await world.startTwins();
    const stationId = await world.openStation();
    await Promise.all(Array.from({ length: 8 }, (_, index) => renew(stationId, `test:twin-${index}`)));
    const conflicts = await Promise.all(hosts.map(({ metrics }) => read(metrics, "stations_append_conflicts_total")));
    expect(Math.max(...conflicts)).toBeGreaterThan(0);
  });

  it("commands that it refused because a queue was full", async () => {
    const { metrics } = await world.startHost();
    const stationId = await world.openStation();
    const burst = 10 * STATION_LIMITS.mailboxLength;
    await Promise.all(Array.from({ length: burst }, (_, index) => renew(stationId, `test:burst-${index}`)));
    const busy = await read(metrics, "stations_busy_total", { queue: "station" });
    const done = await read(metrics, "stations_commands_total", { type: "lease_renew" });
    expect(busy).toBeGreaterThan(0);
    expect(busy + done).toBe(burst);
    expect(await read(metrics, "stations_busy_total", { queue: "host" })).toBe(0);
  });

  it("commands that wait behind another one, and none when all are done", async () => {
    const { proxy, metrics } = await world.startHostBehindProxy();
    const stationId = await world.openStation();
    expect(await read(metrics, "stations_commands_waiting")).toBe(0);
    // The acknowledgement is lost, so the first command is not done until the host has read the log back.
    const lost = proxy.loseNext(`"stream":"STATION_LOG_0"`);
    const first = renew(stationId, "test:slow");
    await lost;
    const others = [1, 2, 3].map((index) => renew(stationId, `test:behind-${index}`));
    await eventually(async () => (await read(metrics, "stations_commands_waiting")) === 3, 900);
    await Promise.all([first, ...others]);
    expect(await read(metrics, "stations_commands_waiting")).toBe(0);
  });

  it("refused reports that the station did not store, and none that it stored", async () => {
    const settlement = await world.startSettlement();
    const { metrics } = await world.startHost();
    const stationId = await world.openStation();
    const companion = await world.addCompanion(stationId);
    const orderId = await world.openOrder(stationId);
    const { intent } = await world.ask(stationId, { type: "intent_create", route: "smart_pos", orderId });
    const intentId = intent?.intentId ?? 0;
    await world.ask(stationId, { type: "intent_cancel", intentId });
    const report = async (providerCode: string) => {
      const reported = { outcome: "reported_success", providerReference: "RRN-1", providerCode } as const;
      return await world.ask(
        stationId,
        { type: "intent_report", intentId, ...reported },
        { actor: deviceActor(companion) },
      );
    };
    const leftOut = () => read(metrics, "stations_late_evidence_left_out_total");
    expect((await report("00")).reply).toMatchObject({ ok: false, code: "intent_not_actionable" });
    expect(await leftOut(), "the first is kept").toBe(0);
    expect((await report("00")).reply).toMatchObject({ ok: false, code: "intent_not_actionable" });
    expect(await leftOut(), "a repetition is not kept").toBe(1);
    for (let nth = 1; nth <= STATE_LIMITS.lateEvidencePerIntent; nth += 1) await report(`0${nth}`);
    expect(await leftOut(), "one more exceeds the bound of one collection").toBe(2);
    await settlement.stop();
  });

  it("repeated settlement requests, and the results of settlements", async () => {
    const settlement = await world.startSettlement();
    const { metrics } = await world.startHost();
    const stationId = await world.openStation();
    const orderId = await world.openOrder(stationId);
    const { intent } = await world.ask(stationId, { type: "intent_create", route: "cash", orderId });
    const intentId = intent?.intentId ?? 0;
    await settlement.stop();
    const attested = world.ask(stationId, { type: "intent_attest", intentId }, { timeoutMs: 8_000 });
    await eventually(async () => (await read(metrics, "stations_settlement_retries_total")) > 0);
    expect(await read(metrics, "stations_settlements_total")).toBe(0);
    await world.startSettlement();
    expect((await attested).reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(await read(metrics, "stations_settlements_total", { result: "succeeded" })).toBe(1);
  });
});
