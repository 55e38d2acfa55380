/** Random lives of a station: small worlds, so that commands meet each other often. */
import fc from "fast-check";
import type { Actor } from "../../machines/actor.ts";
import { REPORTED_OUTCOMES, ROUTES } from "../../machines/payment-intent.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { DEVICE_STATUSES, type KillSwitches, NO_KILL_SWITCHES, STATION_STATUSES } from "../../machines/standing.ts";
import { SETTLEMENT_REFUSALS, type StationCommand } from "../../machines/station/command.ts";
import type { StepInput } from "../../machines/station/outcome.ts";
import { CAPABILITIES, DEVICE_KINDS, ORDER_STATUSES, type StationState } from "../../machines/station/state.ts";
import {
  CASEY,
  COMPANION_DEVICE,
  ORDER,
  REGISTRY,
  ROBIN,
  SETTLEMENT,
  START_MS,
  STATION,
  STATION_ID,
  SYSTEM,
} from "./scenario.ts";

/** One thing that happens to a station; which intent it names is decided when it happens. */
export interface Happening {
  readonly build: (at: Moment) => StationCommand;
  readonly by: Actor;
  readonly key: string | undefined;
  readonly waitMs: number;
  readonly switches: KillSwitches;
}

interface Moment {
  readonly state: StationState | null;
  readonly atMs: number;
  readonly nextIntentId: number;
}

const deviceId = fc.constantFrom(701, 702, 703);
const revision = fc.integer({ min: 1, max: 6 });
const cashier = fc.constantFrom(CASEY, ROBIN);
const device = deviceId.map((id): Actor => ({ kind: "device", id }));
const reference = fc.constantFrom("", "RRN-1", "RRN-2");

/** Mostly what is being collected, now and then what has ended, now and then what never was. */
const someIntent = fc.constantFrom("active", "active", "active", "active", "ended", "none");
type SomeIntent = "active" | "ended" | "none";

function named(which: SomeIntent, { state }: Moment): number {
  if (which === "active") return state?.intent?.intentId ?? state?.ended[0]?.intentId ?? 1;
  return which === "ended" ? (state?.ended.at(-1)?.intentId ?? 1) : 4_711;
}

const order = fc
  .record({
    orderId: fc.constantFrom(501, 502, 503),
    status: fc.constantFrom("open", "open", "open", ...ORDER_STATUSES),
    revision,
    amountMinor: fc.constantFrom("0", "1", "1250", "999999999999", "1000000000000"),
    currency: fc.constantFrom("EUR", "JPY", "KWD"),
  })
  .map((change) => ({ ...ORDER, ...change, orderDisplayNumber: change.orderId - 500 }));

type Told = { readonly by: fc.Arbitrary<Actor>; readonly build: fc.Arbitrary<Happening["build"]> };

const byFeed = (by: Actor, build: Told["build"]): Told => ({ by: fc.constant(by), build });

const TOLD: readonly Told[] = [
  byFeed(
    REGISTRY,
    fc
      .record({ status: fc.constantFrom("active", "active", "active", ...STATION_STATUSES), revision })
      .map((change) => () => ({
        type: "station_put",
        stationId: STATION_ID,
        station: { ...STATION, ...change },
      })),
  ),
  byFeed(
    REGISTRY,
    fc
      .record({
        deviceId,
        status: fc.constantFrom("active", "active", "active", ...DEVICE_STATUSES),
        kind: fc.constantFrom("smart_pos_companion", ...DEVICE_KINDS),
        capabilities: fc.constantFrom([...CAPABILITIES], [...COMPANION_DEVICE.capabilities]),
        revision,
      })
      .map((change) => () => ({ type: "device_put", device: { ...COMPANION_DEVICE, ...change } })),
  ),
  byFeed(
    SETTLEMENT,
    order.map((put) => () => ({ type: "order_put", order: put })),
  ),
  byFeed(
    SYSTEM,
    fc.tuple(deviceId, fc.integer({ min: -30_000, max: 5_000 })).map(([id, skewMs]) => ({ atMs }: Moment) => ({
      type: "device_seen",
      deviceId: id,
      seenAtMs: atMs + skewMs,
    })),
  ),
  byFeed(
    SYSTEM,
    fc.tuple(deviceId, fc.integer({ min: 0, max: 60_000 })).map(([id, agoMs]) => ({ atMs }: Moment) => ({
      type: "device_silent",
      deviceId: id,
      lastSeenAtMs: atMs - agoMs,
    })),
  ),
  { by: cashier, build: fc.constant(() => ({ type: "lease_acquire" })) },
  { by: cashier, build: fc.constant(() => ({ type: "lease_renew", lifetimeMs: 60_000 })) },
  { by: cashier, build: fc.constant(() => ({ type: "lease_release" })) },
  ...[1, 2].map(
    (): Told => ({
      by: cashier,
      build: fc
        .tuple(fc.constantFrom(...ROUTES), order, fc.option(deviceId, { nil: undefined }))
        .map(([route, put, preferred]) => ({ nextIntentId }: Moment) => ({
          type: "intent_create",
          route,
          intentId: nextIntentId,
          order: put,
          deviceId: preferred,
        })),
    }),
  ),
  ...[1, 2].map(
    (): Told => ({
      by: cashier,
      build: fc.tuple(someIntent, reference).map(([which, typed]) => (at: Moment) => ({
        type: "intent_attest",
        intentId: named(which, at),
        reference: typed,
      })),
    }),
  ),
  {
    by: cashier,
    build: someIntent.map((which) => (at: Moment) => ({ type: "intent_cancel", intentId: named(which, at) })),
  },
  {
    by: device,
    build: someIntent.map((which) => (at: Moment) => ({ type: "intent_present", intentId: named(which, at) })),
  },
  ...[1, 2].map(
    (): Told => ({
      by: device,
      build: fc
        .tuple(someIntent, fc.constantFrom(...REPORTED_OUTCOMES), reference)
        .map(([which, outcome, providerReference]) => (at: Moment) => ({
          type: "intent_report",
          intentId: named(which, at),
          outcome,
          providerReference,
          providerCode: "",
        })),
    }),
  ),
  byFeed(
    SETTLEMENT,
    someIntent.map((which) => (at: Moment) => ({
      type: "settlement_succeeded",
      intentId: named(which, at),
      transactionId: 9_001,
    })),
  ),
  byFeed(
    SETTLEMENT,
    fc.tuple(someIntent, fc.constantFrom(...SETTLEMENT_REFUSALS)).map(([which, code]) => (at: Moment) => ({
      type: "settlement_refused",
      intentId: named(which, at),
      code,
    })),
  ),
  byFeed(
    SYSTEM,
    fc.constant(() => ({ type: "tick" })),
  ),
];

/** Mostly moments, sometimes past a deadline, sometimes a little back: the next host's clock is another one. */
const waitMs = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
  { weight: 2, arbitrary: fc.constantFrom(30_000, 180_000, 900_000) },
  { weight: 1, arbitrary: fc.integer({ min: -500, max: 0 }) },
);

const switches = fc.constantFrom<KillSwitches>(
  ...Array.from({ length: 12 }, () => NO_KILL_SWITCHES),
  { ...NO_KILL_SWITCHES, platform: true },
  { ...NO_KILL_SWITCHES, devices: new Set([701]) },
);

/** Few keys, so that repetitions happen; feeds never share a key with anybody. */
const key = fc.option(fc.constantFrom("k1", "k2", "k3", "k4"), { nil: undefined, freq: 3 });

const happening: fc.Arbitrary<Happening> = fc.oneof(
  ...TOLD.map(({ by, build }) => fc.record({ by, build, key, waitMs, switches })),
);

/** A life from the station's first description on. */
export const life: fc.Arbitrary<readonly Happening[]> = fc.array(happening, { maxLength: 60, size: "max" });

/** The command as the station receives it; every life begins with a described station and a live companion. */
export function inputOf(told: Happening, moment: Moment, index: number): StepInput {
  const isFeed = told.by.kind === "registry" || told.by.kind === "settlement" || told.by.kind === "system";
  const commandId = told.key === undefined || isFeed ? `c${index}` : `${told.by.id}:${told.key}`;
  const { by: actor, build, switches: on } = told;
  return {
    command: build(moment),
    commandId,
    actor,
    atMs: moment.atMs,
    switches: on,
    settings: DEFAULT_MACHINE_SETTINGS,
  };
}

/** What every random life starts from, so that collections happen at all. */
export const OPENING: readonly Happening[] = [
  opening(REGISTRY, () => ({ type: "station_put", stationId: STATION_ID, station: { ...STATION, revision: 0 } })),
  opening(REGISTRY, () => ({ type: "device_put", device: { ...COMPANION_DEVICE, revision: 0 } })),
  opening(SYSTEM, ({ atMs }) => ({ type: "device_seen", deviceId: COMPANION_DEVICE.deviceId, seenAtMs: atMs })),
  opening(CASEY, () => ({ type: "lease_acquire" })),
];

function opening(by: Actor, build: Happening["build"]): Happening {
  return { by, build, key: undefined, waitMs: 0, switches: NO_KILL_SWITCHES };
}

export const LIFE_BEGINS_MS = START_MS;
