import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeCommit } from "../../machines/station/commit.ts";
import { openFeed } from "../../services/bus/feed.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { STATION_LOG, STATION_LOG_ALL } from "../support/one-log.ts";
import { QUIET } from "../support/quiet-log.ts";
import { eventually } from "../support/wait-for.ts";
import { type StationWorld, startStationWorld } from "./station-world.ts";

const ROUNDS = Number(process.env["RACE_ROUNDS"] ?? 100);
const STATIONS = 20;
/** The intent expires in some rounds before the cashier's two commands, in others between or after them. */
const LIFETIMES_MS = [60, 120, 240, 480];

describe("an attestation, a cancellation and an expiry at once", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld({ money: true });
    await Promise.all([world.startSettlement(), world.startHost()]);
  });
  afterAll(() => world.stop());

  it(`exactly one of them ends each of ${ROUNDS} intents, and money moves only by the attestation (I7)`, async () => {
    const stationIds = await Promise.all(Array.from({ length: STATIONS }, () => world.openStation()));
    const ends: string[] = [];
    const endings = followEndings(world);
    await Promise.all(
      stationIds.map(async (stationId) => {
        for (let round = 0; round < ROUNDS / STATIONS; round += 1) ends.push(await race(stationId, round));
      }),
    );
    expect(ends).toHaveLength(ROUNDS);
    await eventually(() => endings.size >= ROUNDS);
    expect([...endings.values()].filter((count) => count !== 1)).toEqual([]);
    // The test proves something only when each of the three has ended some intents.
    for (const end of ["succeeded", "cancelled", "expired"]) {
      expect(ends.filter((status) => status === end).length, end).toBeGreaterThan(5);
    }
  });

  async function race(stationId: number, round: number): Promise<string> {
    const lifetimeMs = LIFETIMES_MS[round % LIFETIMES_MS.length] as number;
    const orderId = await world.openOrder(stationId);
    const created = await world.ask(stationId, {
      type: "intent_create",
      route: "cash",
      orderId,
      lifetimeMs,
    });
    const intentId = created.intent?.intentId ?? 0;
    const late = async (type: "intent_attest" | "intent_cancel") => {
      await pause(Math.random() * 1.5 * lifetimeMs);
      const actor = { kind: "cashier", id: 7, name: "Ana" } as const;
      const request = { commandId: `${type}:7:${round}:key`, actor, command: { type, intentId } };
      return await askStation(world.bus.nc, stationId, request);
    };
    const [attested, cancelled] = await Promise.all([late("intent_attest"), late("intent_cancel")]);
    await eventually(async () => (await world.newest(stationId)).state.intent === null);
    const ended = (await world.newest(stationId)).state.ended.find((intent) => intent.intentId === intentId);
    const status = ended?.status ?? "not ended";
    const rows = await world.database()`select 1 from transactions where intent_id = ${intentId}`;
    expect(rows).toHaveLength(status === "succeeded" ? 1 : 0);
    expect(attested.reply.ok).toBe(status === "succeeded");
    expect(cancelled.reply.ok).toBe(status === "cancelled");
    return status;
  }
});

/** Follows the log and counts how often each intent has ended. */
function followEndings(world: StationWorld): ReadonlyMap<number, number> {
  const endings = new Map<number, number>();
  openFeed(world.bus, {
    stream: STATION_LOG.name,
    filter: STATION_LOG_ALL,
    onMessage: (message) => {
      for (const event of decodeCommit(Buffer.from(message.data).toString()).events) {
        if (event.type !== "intent_succeeded" && event.type !== "intent_cancelled" && event.type !== "intent_expired")
          continue;
        endings.set(event.intentId, (endings.get(event.intentId) ?? 0) + 1);
      }
    },
    onReset: () => endings.clear(),
    log: QUIET,
  });
  return endings;
}
