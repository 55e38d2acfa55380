/** A station's lease by its commands: its session, its ends, and its take-over. */
import { describe, expect, it } from "vitest";
import { ENDED_SESSION_KEPT_MS, LEASE_LIFETIME_BOUNDS_MS, STATE_LIMITS } from "../../machines/settings.ts";
import {
  aCounter,
  aServedCounter,
  CASEY,
  CASEYS,
  CASEYS_OTHER,
  OWNER,
  ROBIN,
  ROBINS,
  type Scenario,
} from "./scenario.ts";

const HOUR_MS = 3_600_000;
const aSignedInCounter = () => aCounter().leased(CASEY, undefined, CASEYS).order();

describe("a lease of a session", () => {
  it("the session of the lease ends: the station is free in the same commit, and a current collection goes on", () => {
    const counter = aSignedInCounter().picks("cash").endsSessions(CASEYS.sessionId);
    expect(counter.happened).toEqual(["sessions_ended", "lease_ended"]);
    expect(counter.station).toMatchObject({ lease: null, lostLease: null, intent: { status: "created" } });
    expect(counter.leased(ROBIN).attests({ by: ROBIN }).reply).toMatchObject({ ok: true });
  });

  it("another session ends: the lease stays", () => {
    const counter = aSignedInCounter().endsSessions(CASEYS_OTHER.sessionId, ROBINS.sessionId);
    expect(counter.station.lease).toMatchObject({ cashierId: CASEY.id });
  });

  it("a renewal by another session of the holder: the lease is bound to that one", () => {
    const counter = aSignedInCounter().renews(CASEY, undefined, CASEYS_OTHER).endsSessions(CASEYS.sessionId);
    expect(counter.station.lease).toMatchObject({ sessionId: CASEYS_OTHER.sessionId });
    expect(counter.endsSessions(CASEYS_OTHER.sessionId).station.lease).toBeNull();
  });

  it("a late request of an ended session: an acquisition, a take-over and a renewal are refused", () => {
    const counter = aCounter().endsSessions(CASEYS.sessionId);
    expect(counter.leased(CASEY, undefined, CASEYS).reply).toEqual({ ok: false, code: "session_ended" });
    expect(counter.station.lease).toBeNull();
    counter.leased(CASEY, undefined, CASEYS_OTHER);
    expect(counter.renews(CASEY, undefined, CASEYS).reply).toMatchObject({ code: "session_ended" });
    expect(counter.station.lease).toMatchObject({ sessionId: CASEYS_OTHER.sessionId });
    const taking = { type: "lease_acquire", takeOverFrom: CASEY.id, session: ROBINS } as const;
    counter.endsSessions(ROBINS.sessionId).send(taking, ROBIN);
    expect(counter.reply).toMatchObject({ code: "session_ended" });
  });

  it("ended sessions: each is stored once, for as long as a request of it can be in progress, and within a bound", () => {
    const counter = aCounter().endsSessions(1, 2).endsSessions(2);
    expect(counter.happened).toEqual([]);
    counter.waits(ENDED_SESSION_KEPT_MS).endsSessions(3);
    expect(counter.station.endedSessions.map(({ sessionId }) => sessionId)).toEqual([3]);
    const many = Array.from({ length: STATE_LIMITS.endedSessions + 5 }, (_, index) => 100 + index);
    expect(counter.endsSessions(...many).station.endedSessions).toHaveLength(STATE_LIMITS.endedSessions);
  });

  it("lifetime: never longer than an hour from the last renewal, nor than its session", () => {
    const counter = aCounter().leased(CASEY, 12 * HOUR_MS, CASEYS);
    expect(counter.station.lease?.expiresAtMs).toBe(counter.atMs + LEASE_LIFETIME_BOUNDS_MS.max);
    const short = { ...CASEYS, expiresAtMs: counter.atMs + 90_000 };
    expect(counter.renews(CASEY, HOUR_MS, short).station.lease?.expiresAtMs).toBe(short.expiresAtMs);
    const over = { ...CASEYS_OTHER, expiresAtMs: counter.atMs };
    expect(counter.renews(CASEY, HOUR_MS, over).reply).toMatchObject({ code: "session_ended" });
  });

  it("a lease without a session: the end of a session does not release it", () => {
    expect(aServedCounter().endsSessions(CASEYS.sessionId).station.lease).toMatchObject({ sessionId: null });
  });
});

describe("a take-over", () => {
  it("without the holder's id, or with another's: refused with the holder's name", () => {
    const counter = aServedCounter();
    expect(counter.leased(ROBIN).reply).toEqual({ ok: false, code: "station_leased", holder: "Casey" });
    expect(counter.takesOver(ROBIN, OWNER).reply).toMatchObject({ code: "station_leased", holder: "Casey" });
    expect(counter.takesOver(ROBIN, ROBIN).reply).toMatchObject({ code: "station_leased", holder: "Casey" });
  });

  it("with the holder's id: the collection goes on, only the new holder drives it, and the event names both cashiers", () => {
    const counter = aServedCounter().picks("cash").takesOver();
    expect(counter.happened).toEqual(["lease_taken_over"]);
    expect(counter.commits.at(-1)?.events).toMatchObject([
      { cashierId: ROBIN.id, cashierName: "Robin", fromCashierId: CASEY.id, fromCashierName: "Casey" },
    ]);
    expect(counter.station).toMatchObject({
      lease: { cashierId: ROBIN.id },
      lostLease: { cashierId: CASEY.id, reason: "taken_over", byName: "Robin" },
      intent: { status: "created" },
    });
    expect(counter.attests().reply).toMatchObject({ code: "station_leased", holder: "Robin" });
    expect(counter.cancels({ by: ROBIN }).reply).toMatchObject({ ok: true });
  });

  it("of a free station, or by the cashier who holds it: it is an ordinary acquisition", () => {
    expect(aCounter().takesOver(ROBIN, CASEY).happened).toEqual(["lease_acquired"]);
    expect(aServedCounter().takesOver(CASEY, ROBIN).happened).toEqual(["lease_acquired"]);
  });

  it("during a settlement: the settlement is completed, and the new holder keeps the lease", () => {
    const counter = aServedCounter().picks("cash").attests({ key: "31:attest:a" }).takesOver();
    expect(counter.settles().reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(counter.station.lease).toMatchObject({ cashierId: ROBIN.id });
  });
});

describe("an acquisition under the same id", () => {
  const acquires = (counter: Scenario, requestDigest = "first", takeOverFrom?: number) =>
    counter.send({ type: "lease_acquire", requestDigest, takeOverFrom }, CASEY, "lease_acquire:31:k");
  const anAcquiredCounter = () => acquires(aCounter());

  it("the lease was renewed: the answer is the lease as it is now, and nothing happens", () => {
    const counter = acquires(anAcquiredCounter().waits(1_000).renews(CASEY, 1_800_000));
    expect(counter.happened).toEqual([]);
    expect(counter.reply).toEqual({ ok: true, type: "lease", lease: counter.station.lease, lostLease: null });
    expect(counter.station.lease?.expiresAtMs).toBe(counter.atMs + 1_800_000);
  });

  it.each([
    ["released", (counter: Scenario) => counter.releases()],
    ["broken by the owner", (counter: Scenario) => counter.breaksLease()],
    ["ended with its session", (counter: Scenario) => counter.renews(CASEY, undefined, CASEYS).endsSessions(61)],
    ["lapsed, and no host has committed it yet", (counter: Scenario) => counter.waits(HOUR_MS)],
    ["lapsed", (counter: Scenario) => counter.waits(HOUR_MS).ticks()],
  ])("the lease was %s: refused with lease_required, and nothing happens", (_, end) => {
    const counter = end(anAcquiredCounter());
    const { state } = counter;
    expect(acquires(counter).reply).toEqual({ ok: false, code: "lease_required" });
    expect(counter.state).toBe(state);
  });

  it("another cashier has taken the lease over: refused, and the lease stays", () => {
    const counter = anAcquiredCounter().takesOver(ROBIN);
    expect(acquires(counter).reply).toEqual({ ok: false, code: "station_leased", holder: "Robin" });
    expect(acquires(counter, "second", ROBIN.id).reply).toEqual({ ok: false, code: "idempotency_key_reused" });
    expect(counter.station.lease?.cashierId).toBe(ROBIN.id);
  });

  it("another cashier has taken it over after this take-over: the repeated take-over is refused", () => {
    const counter = aCounter().leased(ROBIN);
    expect(acquires(counter, "first", ROBIN.id).happened).toEqual(["lease_taken_over"]);
    counter.takesOver(ROBIN, CASEY);
    expect(acquires(counter, "first", ROBIN.id).reply).toMatchObject({ code: "station_leased", holder: "Robin" });
    expect(counter.happened).toEqual([]);
  });

  it("the request is another one: refused while the lease is held", () => {
    expect(acquires(anAcquiredCounter(), "second").reply).toEqual({ ok: false, code: "idempotency_key_reused" });
  });

  it("the first acquisition was refused: another request may use the id", () => {
    const counter = aCounter().leased(ROBIN);
    expect(acquires(counter).reply).toMatchObject({ code: "station_leased" });
    expect(acquires(counter, "second", ROBIN.id).happened).toEqual(["lease_taken_over"]);
  });
});

describe("a release and a break under the same id", () => {
  it.each([
    ["a release", { type: "lease_release" }, CASEY],
    ["a break by the owner", { type: "lease_break" }, OWNER],
  ] as const)("%s: no later lease ends, and the answer is the lease as it is now", (_, command, by) => {
    const counter = aServedCounter().send(command, by, "k");
    expect(counter.reply).toMatchObject({ ok: true, lease: null });
    const { lease } = counter.leased(ROBIN).station;
    expect(counter.send(command, by, "k").reply).toMatchObject({ ok: true, lease });
    expect([counter.happened, counter.station.lease]).toEqual([[], lease]);
  });
});

describe("a break of the lease", () => {
  it("by the owner: the station is free, its collection stays, and the lost lease names cashier and owner", () => {
    const counter = aServedCounter().picks("cash").breaksLease();
    expect(counter.happened).toEqual(["lease_broken"]);
    expect(counter.station).toMatchObject({
      lease: null,
      lostLease: { cashierId: CASEY.id, cashierName: "Casey", reason: "broken", byName: "Olga" },
      intent: { status: "created" },
    });
    expect(counter.breaksLease().happened).toEqual([]);
    expect(counter.leased(ROBIN).station.lostLease).toBeNull();
  });

  it("by a cashier: refused", () => {
    expect(aServedCounter().breaksLease(ROBIN).reply).toMatchObject({ code: "lease_required" });
  });
});
