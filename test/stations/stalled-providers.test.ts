/** A station with an overdue QR while the providers service stalls: the cashier's other work (design §2.6, design §2.7). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { eventually } from "../support/wait-for.ts";
import { type ScriptedProviders, startScriptedProviders } from "./scripted-providers.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

const LIFETIME_MS = 1_500;
/** Each measurement has the wait, and some have other load too. So the shortest one is closest to the wait. */
const MEASURED_STATIONS = 3;

describe("a station with an overdue QR, while the providers service receives requests and answers none", () => {
  let world: StationWorld;
  let providers: ScriptedProviders;
  beforeAll(async () => {
    world = await startStationWorld({ money: true });
    await Promise.all([world.startSettlement(), world.startHost()]);
    providers = await startScriptedProviders(world);
  });
  afterAll(async () => {
    await providers.stop();
    await world.stop();
  });

  /** Resolves when the host has checked `checks` times whether the overdue QR was confirmed. */
  const overdueQr = async (checks: number): Promise<{ stationId: number; qrIntentId: number; qrOrderId: number }> => {
    const stationId = await world.openQrStation();
    const orderId = await world.openOrder(stationId);
    const create = { type: "intent_create", route: "dynamic_qr", orderId, lifetimeMs: LIFETIME_MS } as const;
    const qrIntentId = (await world.ask(stationId, create)).intent?.intentId ?? 0;
    providers.recorded.set(qrIntentId, "hangs");
    const asked = () => providers.checked.filter((intentId) => intentId === qrIntentId).length;
    await eventually(() => asked() >= checks);
    return { stationId, qrIntentId, qrOrderId: orderId };
  };

  /** Stations with an overdue QR each, for one measurement. */
  const overdueQrs = (checks: number) =>
    Promise.all(Array.from({ length: MEASURED_STATIONS }, () => overdueQr(checks)));

  /** The shortest wait of the work at these stations: the time that it takes longer than at stations without a QR. */
  const leastWaitedMs = async (
    stations: readonly { readonly stationId: number }[],
    work: (stationId: number) => Promise<unknown>,
  ): Promise<number> => {
    const waits: number[] = [];
    for (const { stationId } of stations) waits.push(await waitedMs(stationId, work));
    return Math.min(...waits);
  };

  const waitedMs = async (stationId: number, work: (stationId: number) => Promise<unknown>): Promise<number> => {
    const tookMs = async (id: number): Promise<number> => {
      const startedAtMs = performance.now();
      await work(id);
      return performance.now() - startedAtMs;
    };
    const [before, after] = await Promise.all([world.openStation(), world.openStation()]);
    const beforeMs = await tookMs(before);
    const waited = await tookMs(stationId);
    return waited - Math.max(beforeMs, await tookMs(after));
  };

  it("commands about anything else: none waits for the check", async () => {
    const stations = await overdueQrs(1);
    const renew = async (id: number) => {
      for (let turn = 0; turn < 5; turn += 1) await world.ask(id, { type: "lease_renew" });
    };
    expect(await leastWaitedMs(stations, renew)).toBeLessThan(STATION_LIMITS.confirmationCheckMs);
    for (const { stationId, qrIntentId } of stations) {
      expect((await world.newest(stationId)).state.intent).toMatchObject({ intentId: qrIntentId, status: "presented" });
    }
  });

  it.each(["cash", "attested_terminal"] as const)(
    "a collection by %s, once a check had no answer: it is created and settled within the time of one check",
    async (route) => {
      const stations = await overdueQrs(2);
      const collect = async (id: number) => {
        const orderId = await world.openOrder(id);
        const created = await world.ask(id, { type: "intent_create", route, orderId });
        const intentId = created.intent?.intentId ?? 0;
        const attested = await world.ask(id, { type: "intent_attest", intentId, reference: `SLIP-${intentId}` });
        expect(attested.reply).toMatchObject({ ok: true, status: "succeeded" });
      };
      expect(await leastWaitedMs(stations, collect)).toBeLessThan(STATION_LIMITS.confirmationCheckMs);
      for (const { stationId, qrIntentId } of stations) {
        const { ended, unclearCollections } = (await world.newest(stationId)).state;
        expect(ended.find((intent) => intent.intentId === qrIntentId)?.status).toBe("expired");
        expect(unclearCollections).toMatchObject([{ intentId: qrIntentId, reason: "qr_presented" }]);
      }
    },
  );

  describe.concurrent("and answers again while an earlier check still has no answer", () => {
    it.each([
      [
        "a new collection",
        (_: number, orderId: number) => ({ type: "intent_create", route: "cash", orderId }) as const,
      ],
      ["a cancellation", (intentId: number) => ({ type: "intent_cancel", intentId }) as const],
    ])("%s: a confirmation that was recorded in time settles the QR", async (_name, commandOf) => {
      const { stationId, qrIntentId, qrOrderId } = await overdueQr(2);
      providers.recorded.set(qrIntentId, `PAY-${qrIntentId}`);
      const { reply } = await world.ask(stationId, commandOf(qrIntentId, qrOrderId));
      expect(reply).toMatchObject({ ok: false, status: "processing" });
      await eventually(async () => (await statusOf(stationId, qrIntentId)) === "succeeded");
    });

    it("a new collection, before the database's clock has reached the deadline: the QR stays", async () => {
      const { stationId, qrIntentId, qrOrderId } = await overdueQr(2);
      providers.recorded.set(qrIntentId, "before the deadline");
      const create = { type: "intent_create", route: "cash", orderId: qrOrderId } as const;
      expect((await world.ask(stationId, create)).reply).toMatchObject({ ok: false, code: "collection_active" });
      expect(await statusOf(stationId, qrIntentId)).toBe("presented");
      providers.recorded.set(qrIntentId, `PAY-${qrIntentId}`);
      await eventually(async () => (await statusOf(stationId, qrIntentId)) === "succeeded");
    });
  });

  const statusOf = async (stationId: number, intentId: number): Promise<string | undefined> => {
    const { intent, ended } = (await world.newest(stationId)).state;
    return [intent, ...ended].find((known) => known?.intentId === intentId)?.status;
  };
});
