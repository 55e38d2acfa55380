/** Random lives of a station with few objects, so that many commands are about the same object. */

import * as fc from "fast-check";
import type { Actor } from "../../machines/actor.ts";
import { PROVIDER_END_REASONS, REPORTED_OUTCOMES, ROUTES } from "../../machines/payment-intent.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { DEVICE_STATUSES, type KillSwitches, NO_KILL_SWITCHES, STATION_STATUSES } from "../../machines/standing.ts";
import { type StationCommand } from "../../machines/station/command.ts";
import type { RecordedConfirmation, StepInput } from "../../machines/station/outcome.ts";
import { SETTLEMENT_REFUSALS } from "../../machines/station/reply.ts";
import {
  CAPABILITIES,
  DEVICE_KINDS,
  findIntent,
  type LostCollections,
  type LostReason,
  ORDER_STATUSES,
  type StationState,
} from "../../machines/station/state.ts";
import {
  CASEY,
  COMPANION_DEVICE,
  ORDER,
  OWNER,
  PROVIDER,
  QR,
  REGISTRY,
  ROBIN,
  SETTLEMENT,
  START_MS,
  STATION,
  STATION_ID,
  SYSTEM,
} from "./scenario.ts";

/** The situation when an event happens. The event takes the ids of its objects from the state. */
interface Moment {
  readonly state: StationState | null;
  readonly atMs: number;
  readonly nextIntentId: number;
}

/** None, the number of the newest reason, or one before it, in turns. */
function olderNumber({ state, nextIntentId }: Moment): number | undefined {
  const before = nextIntentId % 3;
  return before === 2 ? undefined : Math.max(0, (state?.lastReasonNumber ?? 0) - before);
}

/** One event of a station's life. */
export interface Happening {
  readonly by: (at: Moment) => Actor;
  readonly build: (at: Moment) => StationCommand;
  readonly key: string | undefined;
  readonly waitMs: number;
  readonly switches: KillSwitches;
  /** The result of a check for the provider's confirmation. */
  readonly recorded: "none" | "unknown" | "recorded";
}

type By = fc.Arbitrary<Happening["by"]>;
type Build = fc.Arbitrary<Happening["build"]>;
type RandomCommand = readonly [weight: number, by: By, build: Build];

/** The usual value most of the time, otherwise any of the others. */
function mostly<const T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant(usual) },
    { weight: 2, arbitrary: fc.constantFrom(usual, ...others) },
  );
}

const always = (actor: Actor): By => fc.constant(() => actor);
const CASHIER: By = mostly(CASEY, ROBIN).map((actor) => () => actor);
const DEVICE: By = mostly<number | undefined>(undefined, 701, 702, 703).map((id) => ({ state }) => ({
  kind: "device",
  id: id ?? state?.intent?.deviceId ?? COMPANION_DEVICE.deviceId,
}));

const deviceId = mostly(701, 702, 703);
const revision = fc.integer({ min: 1, max: 9 });
const reference = fc.constantFrom("", "RRN-1", "RRN-2");

/** The id of the current collection, of one that ended recently or long ago, or of no collection. */
const intentId = mostly<"active" | "last" | "oldest" | "none">("active", "last", "oldest", "none").map(
  (which) =>
    ({ state }: Moment): number => {
      const last = state?.ended[0]?.intentId ?? 1;
      if (which === "active") return state?.intent?.intentId ?? last;
      if (which === "last") return last;
      return which === "oldest" ? (state?.ended.at(-1)?.intentId ?? 1) : 4_711;
    },
);

/** Amounts that the contract can write. The writer of an order refuses others, and the creation of an intent checks again. */
const WRITABLE = ["1", "1250", "9999999990", "0"] as const;
const UNWRITABLE = "1000000000000";

/** One of a few orders. Their numbers grow during the life, so that new orders come. */
const orderWith = (...unusual: readonly string[]) =>
  fc
    .record({
      turn: fc.integer({ min: 0, max: 2 }),
      status: mostly("open", ...ORDER_STATUSES),
      revision,
      amountMinor: mostly("1250", ...WRITABLE, ...unusual),
      currency: fc.constantFrom("EUR", "JPY", "KWD"),
    })
    .map(({ turn, ...change }) => ({ nextIntentId }: Moment) => {
      const orderDisplayNumber = Math.floor(nextIntentId / 16) + turn;
      return { ...ORDER, ...change, orderId: 500 + orderDisplayNumber, orderDisplayNumber };
    });

/** What the log may have lost of an intent that the state has, and of one that it does not have. */
const lostCollections = fc
  .record({
    intentId,
    isOfProvider: fc.boolean(),
    isAssumed: fc.boolean(),
    nextIntentNumber: fc.integer({ min: 1, max: 9 }),
  })
  .map(({ intentId: named, isOfProvider, isAssumed, nextIntentNumber }) => (at: Moment): LostCollections => {
    const lostId = named(at);
    const intent = at.state === null ? undefined : findIntent(at.state, lostId);
    const isQr = intent === undefined ? isOfProvider : intent.route === "dynamic_qr";
    const lost: LostReason = {
      orderId: intent?.orderId ?? ORDER.orderId,
      intentId: lostId,
      reason: isQr ? "qr_presented" : "outcome_unknown",
      ...(isAssumed && { isAssumed }),
    };
    return { unclear: [lost], reasons: [lost], unclearThrough: 0, nextIntentNumber };
  });

const FEEDS: readonly RandomCommand[] = [
  [
    1,
    always(REGISTRY),
    lostCollections.map((lost) => (at) => ({
      type: "station_put",
      stationId: STATION_ID,
      station: STATION,
      lost: lost(at),
    })),
  ],
  [
    1,
    always(REGISTRY),
    fc.record({ status: mostly("active", ...STATION_STATUSES), revision }).map((change) => () => ({
      type: "station_put",
      stationId: STATION_ID,
      station: { ...STATION, ...change },
    })),
  ],
  [
    2,
    always(REGISTRY),
    fc
      .record({
        deviceId,
        status: mostly("active", ...DEVICE_STATUSES),
        kind: mostly("smart_pos_companion", ...DEVICE_KINDS),
        capabilities: mostly([...COMPANION_DEVICE.capabilities], [...CAPABILITIES], []),
        revision,
      })
      .map((change) => () => ({ type: "device_put", device: { ...COMPANION_DEVICE, ...change } })),
  ],
  [3, always(SETTLEMENT), orderWith().map((order) => (at) => ({ type: "order_put", order: order(at) }))],
  [
    4,
    always(SYSTEM),
    fc.tuple(deviceId, fc.integer({ min: -30_000, max: 5_000 })).map(([id, skewMs]) => ({ atMs }) => ({
      type: "device_seen",
      deviceId: id,
      seenAtMs: atMs + skewMs,
    })),
  ],
  [
    1,
    always(SYSTEM),
    fc.tuple(deviceId, fc.integer({ min: 0, max: 60_000 })).map(([id, agoMs]) => ({ atMs }) => ({
      type: "device_silent",
      deviceId: id,
      lastSeenAtMs: atMs - agoMs,
    })),
  ],
  [
    1,
    always(SYSTEM),
    fc
      .constantFrom<StationCommand>({ type: "tick" }, { type: "rule_out", commandId: "lost:1" })
      .map((command) => () => command),
  ],
];

/** One of a few sessions, which sometimes expires at this moment, or no session. */
const session = fc.tuple(mostly<number | undefined>(61, 62, 63, 64, undefined), mostly(3_600_000, 0)).map(
  ([sessionId, leftMs]) =>
    ({ atMs }: Moment) =>
      sessionId === undefined ? undefined : { sessionId, expiresAtMs: atMs + leftMs },
);

const PEOPLE: readonly RandomCommand[] = [
  [
    6,
    CASHIER,
    fc
      .tuple(session, mostly<string | undefined>(undefined, "1ksqz4x.0jr2vf", "other"))
      .map(([of, requestDigest]) => (at) => ({ type: "lease_acquire", session: of(at), requestDigest })),
  ],
  [1, CASHIER, fc.constantFrom(31, 32).map((takeOverFrom) => () => ({ type: "lease_acquire", takeOverFrom }))],
  [2, CASHIER, session.map((of) => (at) => ({ type: "lease_renew", lifetimeMs: 600_000, session: of(at) }))],
  [1, always(OWNER), fc.constant(() => ({ type: "lease_break" }))],
  [
    1,
    always(REGISTRY),
    fc.constantFrom([61], [62, 63], [64]).map((sessionIds) => () => ({ type: "sessions_ended", sessionIds })),
  ],
  [1, CASHIER, fc.constant(() => ({ type: "lease_release" }))],
  [
    8,
    CASHIER,
    fc
      .tuple(
        fc.oneof(fc.constantFrom("smart_pos", "dynamic_qr"), fc.constantFrom(...ROUTES)),
        orderWith(UNWRITABLE),
        mostly(undefined, 701, 702, 703),
        fc.constantFrom(undefined, true),
      )
      .map(([route, order, preferred, confirmsMoneyMayHaveMoved]) => (at) => ({
        type: "intent_create",
        route,
        intentId: at.nextIntentId,
        order: order(at),
        deviceId: preferred,
        confirmsMoneyMayHaveMoved,
        confirmedReasonNumber: olderNumber(at),
      })),
  ],
  [
    8,
    CASHIER,
    fc.tuple(intentId, reference).map(([id, typed]) => (at) => ({
      type: "intent_attest",
      intentId: id(at),
      reference: typed,
      // One request in three confirms that an earlier collection may have moved money.
      confirmsMoneyMayHaveMoved: typed === "RRN-2",
      confirmedReasonNumber: olderNumber(at),
    })),
  ],
  [2, CASHIER, intentId.map((id) => (at) => ({ type: "intent_cancel", intentId: id(at) }))],
];

const DEVICES: readonly RandomCommand[] = [
  [5, DEVICE, intentId.map((id) => (at) => ({ type: "intent_present", intentId: id(at) }))],
  [
    8,
    DEVICE,
    fc
      .tuple(intentId, fc.constantFrom(...REPORTED_OUTCOMES), reference)
      .map(([id, outcome, providerReference]) => (at) => ({
        type: "intent_report",
        intentId: id(at),
        outcome,
        providerReference,
        providerCode: "",
      })),
  ],
];

const SEAM: readonly RandomCommand[] = [
  [
    5,
    always(SETTLEMENT),
    intentId.map((id) => (at) => ({ type: "settlement_succeeded", intentId: id(at), transactionId: 9_001 })),
  ],
  [
    2,
    always(SETTLEMENT),
    fc.tuple(intentId, fc.constantFrom(...SETTLEMENT_REFUSALS)).map(([id, code]) => (at) => ({
      type: "settlement_refused",
      intentId: id(at),
      code,
    })),
  ],
];

/** Mostly the config of the provider that was asked. The station ignores reports of another config. */
const CONFIG: By = mostly<number | undefined>(undefined, 81, 82).map((id) => ({ state }) => ({
  kind: "provider",
  id: id ?? state?.intent?.provider?.configId ?? PROVIDER.id,
}));
const payment = mostly("PAY-1", "PAY-2");

const PROVIDERS: readonly RandomCommand[] = [
  [
    1,
    always(REGISTRY),
    fc.tuple(mostly<number | null>(81, 82, null), revision).map(([configId, newest]) => () => ({
      type: "provider_put",
      provider: { configId, revision: newest },
    })),
  ],
  [
    5,
    CONFIG,
    fc.tuple(intentId, payment).map(([id, providerReference]) => (at) => ({
      type: "qr_ready",
      intentId: id(at),
      qrPayload: QR,
      providerReference,
    })),
  ],
  [
    6,
    CONFIG,
    fc.tuple(intentId, payment).map(([id, providerReference]) => (at) => ({
      type: "provider_confirm",
      intentId: id(at),
      providerReference,
    })),
  ],
  [
    2,
    CONFIG,
    fc.tuple(intentId, fc.constantFrom(...PROVIDER_END_REASONS)).map(([id, reason]) => (at) => ({
      type: "provider_failed",
      intentId: id(at),
      reason,
    })),
  ],
  [1, CONFIG, intentId.map((id) => (at) => ({ type: "provider_cleared", intentId: id(at) }))],
  [
    2,
    CONFIG,
    fc
      .tuple(intentId, fc.constantFrom("amount_mismatch", "late_money"), mostly(1, 2))
      .map(([id, issue, issueId]) => (at) => ({ type: "provider_money_differs", intentId: id(at), issue, issueId })),
  ],
  [
    1,
    CONFIG,
    fc.boolean().map((isActive) => ({ state, nextIntentId }) => {
      const active = isActive ? state?.intent?.orderId : undefined;
      return { type: "order_inquire", orderId: active ?? 500 + Math.floor(nextIntentId / 16) };
    }),
  ],
  [3, always(SYSTEM), fc.constant(({ state }) => ({ type: "end_reported", intentId: state?.unreportedEnds[0] ?? 1 }))],
];

/** Mostly short, sometimes past a deadline, sometimes negative, because another host has another clock. */
const waitMs = fc.oneof(
  { weight: 16, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(30_000, 180_000, 900_000) },
  { weight: 1, arbitrary: fc.integer({ min: -500, max: 0 }) },
);

const switches = mostly<KillSwitches>(
  NO_KILL_SWITCHES,
  { ...NO_KILL_SWITCHES, platform: true },
  { ...NO_KILL_SWITCHES, devices: new Set([701]) },
  { ...NO_KILL_SWITCHES, providers: new Set([81]) },
);

/** Few keys, so that repetitions happen. */
const key = mostly(undefined, "k1", "k2", "k3", "k4");

/** The result of a check for a confirmation, when there is a check. */
const recorded = mostly("none" as const, "unknown" as const, "recorded" as const);

/** A random life: up to 80 events of a station. */
export const life: fc.Arbitrary<readonly Happening[]> = fc.array(
  fc.oneof(
    ...[...FEEDS, ...PEOPLE, ...DEVICES, ...PROVIDERS, ...SEAM].map(([weight, by, build]) => ({
      weight,
      arbitrary: fc.record({ by, build, key, waitMs, switches, recorded }),
    })),
  ),
  { maxLength: 80, size: "max" },
);

/** The command as the station receives it. A key counts per actor and kind of command, as the gateway builds it. */
export function inputOf(happening: Happening, moment: Moment, index: number): StepInput {
  const actor = happening.by(moment);
  const command = happening.build(moment);
  const isKeyed =
    happening.key !== undefined && (actor.kind === "cashier" || actor.kind === "device" || actor.kind === "provider");
  return {
    command,
    commandId: isKeyed ? `${actor.id}:${command.type}:${happening.key}` : `c${index}`,
    actor,
    atMs: moment.atMs,
    switches: happening.switches,
    settings: DEFAULT_MACHINE_SETTINGS,
    recordedConfirmation: recordedOf(happening.recorded, moment.state),
  };
}

/** What the providers service has recorded about the active intent. */
function recordedOf(found: Happening["recorded"], state: StationState | null): RecordedConfirmation {
  if (found !== "recorded") return found;
  const active = state?.intent ?? null;
  return active === null ? "none" : { providerReference: `PAY-${active.intentId}` };
}

/** The first events of every random life, without which no collection is possible. */
export const OPENING: readonly Happening[] = [
  opening(REGISTRY, () => ({ type: "station_put", stationId: STATION_ID, station: { ...STATION, revision: 0 } })),
  opening(REGISTRY, () => ({ type: "device_put", device: { ...COMPANION_DEVICE, revision: 0 } })),
  opening(SYSTEM, ({ atMs }) => ({ type: "device_seen", deviceId: COMPANION_DEVICE.deviceId, seenAtMs: atMs })),
  opening(CASEY, () => ({ type: "lease_acquire" })),
  opening(REGISTRY, () => ({ type: "provider_put", provider: { configId: PROVIDER.id, revision: 1 } })),
];

function opening(by: Actor, build: Happening["build"]): Happening {
  return { by: () => by, build, key: undefined, waitMs: 0, switches: NO_KILL_SWITCHES, recorded: "none" };
}

export const LIFE_BEGINS_MS = START_MS;
