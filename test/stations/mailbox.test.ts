import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import type { StationAnswer } from "../../services/stations/work.ts";
import { CASHIER, type StationWorld, startStationWorld } from "./station-world.ts";

const renewal = (commandId: string) => ({ commandId, actor: CASHIER, command: { type: "lease_renew" } });

describe("a station with too many commands", () => {
  let world: StationWorld;
  beforeAll(async () => {
    world = await startStationWorld();
    await world.startHost();
  });
  afterAll(() => world.stop());

  /** Sends one request, which no client repeats. */
  const askOnce = async (stationId: number, body: unknown): Promise<StationAnswer> => {
    const payload = typeof body === "string" ? body : JSON.stringify(body);
    return (await world.bus.nc.request(stationCommandSubject(stationId), payload, { timeout: 15_000 })).json();
  };

  it("a full queue: further commands get busy at once, and each accepted command is done exactly once", async () => {
    const stationId = await world.openStation();
    const burst = 10 * STATION_LIMITS.mailboxLength;
    const answers = await Promise.all(
      Array.from({ length: burst }, async (_, index) => {
        const commandId = `test:burst-${index}`;
        const answer = await askOnce(stationId, renewal(commandId));
        return { commandId, answer };
      }),
    );
    const busy = answers.filter(({ answer }) => "failure" in answer && answer.failure === "busy");
    const done = answers.filter(({ answer }) => "reply" in answer && answer.reply.ok);
    expect(busy.length + done.length).toBe(burst);
    expect(busy.length).toBeGreaterThan(0);
    expect(done.length).toBeGreaterThanOrEqual(STATION_LIMITS.mailboxLength);
    for (const { answer } of busy) expect(answer).toMatchObject({ retryAfterMs: STATION_LIMITS.busyRetryMs });
    const inLog = (await world.commits(stationId)).map((commit) => commit.commandId);
    for (const { commandId } of busy) expect(inLog).not.toContain(commandId);
    const kept = inLog.filter((commandId) => commandId.startsWith("test:burst"));
    expect(new Set(kept).size).toBe(kept.length);
    expect(done.map(({ commandId }) => commandId)).toEqual(expect.arrayContaining(kept));
  });

  it("a request that is repeated while the first waits: uses no further place, and gets the same answer", async () => {
    const stationId = await world.openStation();
    const answers = await Promise.all(
      Array.from({ length: 10 * STATION_LIMITS.mailboxLength }, () => askOnce(stationId, renewal("test:again"))),
    );
    expect(answers[0]).toMatchObject({ reply: { ok: true } });
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    const kept = (await world.commits(stationId)).filter(({ commandId }) => commandId === "test:again");
    expect(kept).toHaveLength(1);
  });

  it("a command to another station: does not wait for the queue", async () => {
    const [crowded, quiet] = await Promise.all([world.openStation(), world.openStation()]);
    const crowd = Promise.all(Array.from({ length: 200 }, (_, index) => askOnce(crowded, renewal(`test:c${index}`))));
    expect(await askOnce(quiet, renewal("test:quiet"))).toMatchObject({ reply: { ok: true } });
    await crowd;
  });

  it.each([
    ["a body that is no JSON", "{"],
    ["an empty body", ""],
    ["an unknown command", { commandId: "x:1", actor: CASHIER, command: { type: "explode" } }],
    [
      "a command that no caller may send",
      { commandId: "x:2", actor: CASHIER, command: { type: "settlement_succeeded", intentId: 1, transactionId: 1 } },
    ],
    ["a command id that is too long", { commandId: "x".repeat(201), actor: CASHIER, command: { type: "lease_renew" } }],
    [
      "an actor of an unknown kind",
      { commandId: "x:3", actor: { kind: "guest", id: 1 }, command: { type: "lease_renew" } },
    ],
  ])("%s: refused as invalid with details, and the host continues", async (_what, body) => {
    const stationId = await world.openStation();
    const before = (await world.commits(stationId)).length;
    const answer = await askOnce(stationId, body);
    expect(answer).toMatchObject({ failure: "invalid_request", errors: [{ detail: expect.any(String) }] });
    expect(await world.commits(stationId)).toHaveLength(before);
    expect((await world.ask(stationId, { type: "lease_renew" })).reply.ok).toBe(true);
  });
});
