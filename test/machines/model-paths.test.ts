/**
 * Model-based tests: xstate/graph makes paths through each machine's graph, and the test sends each path to the station as
 * commands. After each command, the station's state must be the state of the model.
 */

import { describe, expect, it } from "vitest";
import type { AnyMachineSnapshot, AnyStateMachine, EventFromLogic, InputFrom } from "xstate";
import { getShortestPaths, getSimplePaths } from "xstate/graph";
import { type IntentEvent, paymentIntentMachine } from "../../machines/intent-machine.ts";
import { LEASE_STATES, type LeaseEvent, type LeaseHolder, type LostLease, leaseMachine } from "../../machines/lease.ts";
import { LIVENESS_STATES, type LivenessEvent, livenessMachine } from "../../machines/liveness.ts";
import { INTENT_STATES, type IntentState } from "../../machines/payment-intent.ts";
import { take } from "../../machines/pure-transition.ts";
import {
  DEVICE_STATUSES,
  type DeviceStandingEvent,
  deviceStandingMachine,
  STATION_STATUSES,
  type StationStandingEvent,
  stationStandingMachine,
} from "../../machines/standing.ts";
import {
  aCounter,
  aQrCounter,
  aServedCounter,
  CASEY,
  CASEYS,
  CASEYS_OTHER,
  COMPANION,
  COMPANION_DEVICE,
  ROBIN,
  type Scenario,
  START_MS,
} from "./scenario.ts";

type WalkedRoute = "smart_pos" | "cash" | "dynamic_qr";

/** A path without the initial step of the graph: the events that were sent and their target states. */
interface Walk<TEvent> {
  readonly name: string;
  readonly steps: readonly { readonly event: TEvent; readonly value: string }[];
}

/** Longer paths repeat a cycle that a shorter path contains already. */
const MAX_STATES_WALKED = 5_000;

function walksOf<TMachine extends AnyStateMachine>(
  machine: TMachine,
  events: readonly EventFromLogic<TMachine>[],
  options: { readonly input?: InputFrom<TMachine>; readonly ways: "shortest" | "simple" },
): readonly Walk<EventFromLogic<TMachine>>[] {
  const any: AnyStateMachine = machine;
  const find = options.ways === "shortest" ? getShortestPaths : getSimplePaths;
  const paths = find(any, {
    events: [...events],
    input: options.input,
    limit: MAX_STATES_WALKED,
    serializeState: (state: AnyMachineSnapshot) => situationOf(state),
  });
  return paths.map((path) => {
    const steps = path.steps
      .filter((step) => step.event.type !== "xstate.init")
      .map(({ event, state }) => ({ event: event as EventFromLogic<TMachine>, value: state.value as string }));
    return { name: steps.map((step) => step.event.type).join(" → ") || "nothing", steps };
  });
}

/** States that differ only in times and in counts above one count as one state. Otherwise the search would never end. */
function situationOf(state: AnyMachineSnapshot): string {
  const { presentedAtMs, reportCount, provider, holder, lost, lastSeenAtMs, moneyMayHaveMoved } =
    state.context as Record<string, unknown>;
  const confirmedAtMs = (provider as { confirmedAtMs?: number | null } | null | undefined)?.confirmedAtMs;
  const { cashierId, sessionId } = (holder ?? {}) as Partial<LeaseHolder>;
  const lostBy = (lost as LostLease | null | undefined)?.cashierId;
  return JSON.stringify([
    state.value,
    typeof presentedAtMs === "number",
    Math.min(Number(reportCount ?? 0), 1),
    typeof confirmedAtMs === "number",
    moneyMayHaveMoved,
    cashierId,
    sessionId,
    lostBy,
    lastSeenAtMs,
  ]);
}

const reached = (walks: readonly Walk<unknown>[], initial: string): readonly string[] => [
  ...new Set([initial, ...walks.flatMap((walk) => walk.steps.map((step) => step.value))]),
];

describe("the payment intent's paths, run through the station", () => {
  const attestation = {
    by: "cashier",
    commandId: "a",
    cashierId: 31,
    cashierName: "Casey",
    reference: "",
    atMs: 1,
    transactionId: null,
  } as const;
  const report = {
    deviceId: 701,
    outcome: "reported_success",
    providerReference: "R",
    providerCode: "",
    reportedAtMs: 1,
    key: "k",
  } as const;
  const EVENTS = [
    { type: "PRESENT", atMs: 1 },
    { type: "REPORT", report },
    { type: "ATTEST", attestation },
    { type: "SETTLED", atMs: 1, transactionId: 1 },
    { type: "REFUSED" },
    { type: "CANCEL", atMs: 1, key: "k" },
    { type: "EXPIRE", atMs: 1 },
    { type: "QR_READY", atMs: 1, qrPayload: "000201", providerReference: "PAY-1" },
    { type: "CONFIRM", atMs: 1, attestation, providerReference: "PAY-1" },
    { type: "FAIL", atMs: 1, reason: "provider_timed_out" },
    { type: "OVERTAKEN", atMs: 1, reason: "order_already_paid" },
    { type: "MARK", reason: "money_differs" },
    { type: "CLEAR" },
  ] as const satisfies readonly IntentEvent[];

  /** How the station causes each of the machine's events. */
  const BY_STATION: Record<IntentEvent["type"], (counter: Scenario) => Scenario> = {
    PRESENT: (counter) => counter.fetches(),
    REPORT: (counter) => counter.reports("reported_success", { reference: "R" }),
    ATTEST: (counter) => counter.attests(),
    SETTLED: (counter) => counter.settles(),
    REFUSED: (counter) => counter.refusesToSettle(),
    CANCEL: (counter) => counter.cancels(),
    EXPIRE: (counter) => counter.waits(180_000).ticks(),
    QR_READY: (counter) => counter.givesQr(),
    CONFIRM: (counter) => counter.confirms(),
    FAIL: (counter) => counter.fails("provider_timed_out"),
    OVERTAKEN: (counter) => counter.order({ status: "paid", revision: 9 }),
    MARK: (counter) =>
      counter.intent?.provider === null
        ? counter.reports("reported_success", { blocked: "device_frozen" })
        : counter.differs(),
    CLEAR: (counter) => counter.clears(),
  };
  /** Events that are impossible on a route are not tried; events that the machine refuses are not part of a path. */
  const NOT_ON: Record<WalkedRoute, readonly IntentEvent["type"][]> = {
    smart_pos: [],
    cash: ["PRESENT", "REPORT", "MARK"],
    dynamic_qr: [],
  };
  const UNREACHED: Record<WalkedRoute, readonly IntentState[]> = {
    smart_pos: [],
    cash: ["presented", "processing"],
    dynamic_qr: [],
  };

  for (const route of ["smart_pos", "cash", "dynamic_qr"] as const) {
    const { status: _status, ...input } = aQrCounter().picks(route).intent ?? { status: "created" };
    const events = EVENTS.filter(({ type }) => !NOT_ON[route].includes(type));
    const walks = walksOf(paymentIntentMachine, events, { input, ways: "simple" });

    it.each(walks)(`${route}: $name`, ({ steps }) => {
      const counter = aQrCounter().picks(route);
      for (const { event, value } of steps) {
        BY_STATION[event.type](counter.waits(10));
        expect(counter.intent?.status, event.type).toBe(value);
      }
    });

    it(`${route}: the walks reach every state that the route has`, () => {
      const expected = INTENT_STATES.filter((state) => !UNREACHED[route].includes(state));
      expect(reached(walks, "created").toSorted()).toEqual(expected.toSorted());
    });
  }

  it("every state is at most four events away from created", () => {
    const { status: _status, ...input } = aServedCounter().picks("smart_pos").intent ?? { status: "created" };
    const walks = walksOf(paymentIntentMachine, EVENTS, { input, ways: "shortest" });
    expect(Math.max(...walks.map((walk) => walk.steps.length))).toBeLessThanOrEqual(4);
  });
});

function sayLease(counter: Scenario, event: LeaseEvent): void {
  const person = (id: number) => (id === ROBIN.id ? ROBIN : CASEY);
  const session = (sessionId: number | null) =>
    sessionId === null ? undefined : { ...CASEYS, sessionId, expiresAtMs: counter.atMs + 12 * 3_600_000 };
  switch (event.type) {
    case "ACQUIRE": {
      const { cashierId, sessionId } = event.holder;
      return void counter.leased(person(cashierId), undefined, session(sessionId));
    }
    case "TAKE_OVER":
      return void counter.takesOver(person(event.holder.cashierId), person(event.fromCashierId));
    case "RENEW":
      return void counter.renews(person(event.cashierId), undefined, session(event.sessionId));
    case "RELEASE":
      return void counter.releases(person(event.cashierId));
    case "END":
      return void counter.endsSessions(...event.sessionIds);
    case "BREAK":
      return void counter.breaksLease();
    case "LAPSE":
      return void counter.waits(15 * 60_000).ticks();
  }
}

describe("the lease's paths, run through the station", () => {
  const holder = {
    cashierId: CASEY.id,
    cashierName: "Casey",
    sessionId: CASEYS.sessionId,
    acquiredAtMs: 1,
    expiresAtMs: 2,
  };
  const robin = { cashierId: ROBIN.id, cashierName: "Robin", sessionId: null, acquiredAtMs: 1, expiresAtMs: 2 };
  const EVENTS = [
    { type: "ACQUIRE", holder },
    { type: "ACQUIRE", holder: robin },
    { type: "TAKE_OVER", holder: robin, fromCashierId: CASEY.id },
    { type: "RENEW", cashierId: CASEY.id, sessionId: CASEYS_OTHER.sessionId, expiresAtMs: 2 },
    { type: "RELEASE", cashierId: CASEY.id },
    { type: "RELEASE", cashierId: ROBIN.id },
    { type: "END", sessionIds: [CASEYS.sessionId] },
    { type: "BREAK", byName: "Olga", atMs: 1 },
    { type: "LAPSE" },
  ] as const satisfies readonly LeaseEvent[];

  const walks = walksOf(leaseMachine, EVENTS, { ways: "simple" });
  it.each(walks)("$name", ({ steps }) => {
    const counter = aCounter();
    for (const { event, value } of steps) {
      // This wait is longer than the station stores an ended session. The machine stores no ended sessions.
      sayLease(counter.waits(61_000), event);
      expect(counter.station.lease === null ? "free" : "held", event.type).toBe(value);
    }
  });

  it("the walks reach every state", () => {
    expect(reached(walks, "free").toSorted()).toEqual([...LEASE_STATES].toSorted());
  });
});

describe("the paths of liveness, run through the station", () => {
  // The graph must be finite: it has three moments at which a device may send a heartbeat or be silent.
  const MOMENTS_MS = [10_000, 20_000, 30_000];
  const EVENTS: readonly LivenessEvent[] = MOMENTS_MS.flatMap((atMs) => [
    { type: "SEEN", seenAtMs: START_MS + atMs } as const,
    { type: "SILENT", lastSeenAtMs: START_MS + atMs, atMs: START_MS + atMs + 25_000 } as const,
  ]);
  const walks = walksOf(livenessMachine, EVENTS, { ways: "simple" });

  it.each(walks)("$name", ({ steps }) => {
    const counter = aCounter().describesDevice({ ...COMPANION_DEVICE, status: "pending", revision: 2 });
    counter.describesDevice({ ...COMPANION_DEVICE, revision: 3 }).waits(60_000);
    for (const { event, value } of steps) {
      if (event.type === "SEEN") counter.receivesHeartbeat(COMPANION, event.seenAtMs);
      else counter.noticesSilence(COMPANION, event.lastSeenAtMs);
      expect(counter.device()?.liveness.state).toBe(value);
    }
  });

  it("the walks reach every state", () => {
    expect(reached(walks, "offline").toSorted()).toEqual([...LIVENESS_STATES].toSorted());
  });
});

describe("the paths of standing, run through the station", () => {
  const STATION_EVENTS = [
    { type: "SUSPEND" },
    { type: "RESUME" },
    { type: "CLOSE" },
  ] as const satisfies readonly StationStandingEvent[];
  const DEVICE_EVENTS = [
    { type: "CLAIM" },
    { type: "SUSPEND" },
    { type: "RESUME" },
    { type: "RESET" },
    { type: "REVOKE" },
  ] as const satisfies readonly DeviceStandingEvent[];
  const stationWalks = walksOf(stationStandingMachine, STATION_EVENTS, { ways: "simple" });
  const deviceWalks = walksOf(deviceStandingMachine, DEVICE_EVENTS, { ways: "simple" });

  it.each(stationWalks)("station: $name", ({ steps }) => {
    const counter = aCounter();
    let at = "active";
    for (const { event, value } of steps) {
      at = take(stationStandingMachine, { value: at, context: {} }, event)?.value ?? at;
      counter.describesStation({
        status: value as (typeof STATION_STATUSES)[number],
        revision: counter.station.revision + 1,
      });
      expect([at, counter.station.status]).toEqual([value, value]);
    }
  });

  it.each(deviceWalks)("device: $name", ({ steps }) => {
    const counter = aCounter();
    let at = "pending";
    let revision = 1;
    for (const { event, value } of steps) {
      at = take(deviceStandingMachine, { value: at, context: {} }, event)?.value ?? at;
      revision += 1;
      const status = value as (typeof DEVICE_STATUSES)[number];
      counter.describesDevice({ ...COMPANION_DEVICE, status, revision });
      expect([at, counter.device()?.status ?? "revoked"]).toEqual([value, value]);
    }
  });

  it("the walks reach every state", () => {
    expect(reached(stationWalks, "active").toSorted()).toEqual([...STATION_STATUSES].toSorted());
    expect(reached(deviceWalks, "pending").toSorted()).toEqual([...DEVICE_STATUSES].toSorted());
  });
});
