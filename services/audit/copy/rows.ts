/**
 * Makes the rows of the audit copy from commits and their sequences in the stream. Pure.
 *
 * A commit has the same version in the copy as in the log, unless the log has lost commits and has used their versions again.
 * Then the versions in the copy are ahead of those in the log by an offset.
 */
import type { Actor } from "../../../machines/actor.ts";
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import { type Commit, decodeCommit, NewerMachineError } from "../../../machines/station/commit.ts";
import type { StationEvent } from "../../../machines/station/event.ts";
import { collectionsOf } from "../../../machines/station/lost-collections.ts";
import { findDevice, findIntent, type LostCollections, type StationState } from "../../../machines/station/state.ts";
import { parseStationId } from "../../bus/subjects.ts";
import { storableText } from "../../db/stored-text.ts";
import { type LaterEvent, laterEventsOf, type PaymentRow, paymentRow } from "./payment-rows.ts";

/** A commit as it was read from the stream. */
export interface StreamedCommit {
  readonly commit: Commit;
  readonly streamSequence: number;
}

/** Commits that are missing in the copy. */
export interface Gap {
  readonly stationId: number;
  readonly fromVersion: number;
  readonly toVersion: number;
  /** The first commit after them. */
  readonly next: Commit;
}

/** How far a station is copied. */
export interface CopyHead {
  /** The newest version in the copy. */
  readonly version: number;
  /** By how much the copy's versions are ahead of the log's. Null after a loss, until the next commit shows it. */
  readonly offset: number | null;
}

interface HeadRow {
  readonly station_id: number;
  readonly version: number;
  readonly version_offset: number;
  /** The sequence of that commit in the stream. */
  readonly stream_sequence: number;
  /** The collections that may have moved money, as of that commit. */
  readonly collections: LostCollections;
  /** Whether the station has received back the collections that its log had lost. */
  readonly isRestored: boolean;
  readonly organization_id: number;
  readonly leased_until_ms: number | null;
  readonly devices_online: number;
  readonly devices_offline: number;
}

interface EventFacts {
  readonly version: number;
  readonly ordinal: number;
  readonly intent_id: number | null;
  readonly type: string;
  readonly data: object;
}

export interface BatchRows {
  readonly events: readonly ReturnType<typeof eventRow>[];
  /** The newest row of each intent. */
  readonly intents: readonly ReturnType<typeof intentRow>[];
  /** The same intents, for the list of payments. */
  readonly payments: readonly PaymentRow[];
  readonly laterEvents: readonly LaterEvent[];
  readonly heads: readonly HeadRow[];
  readonly gaps: readonly Gap[];
}

const NOT_COPIED: CopyHead = { version: 0, offset: 0 };
const SYSTEM: Actor = { kind: "system", id: 0 };

/**
 * The commit in a message of a log. Undefined for a message that is no commit: it is left out, and the copy then has a gap.
 * Throws {@link NewerMachineError} for a newer program's commit, which this program could misunderstand: the copy waits for
 * the upgrade.
 */
export function readCommit(message: { readonly subject: string; string(): string }): Commit | undefined {
  let commit: Commit;
  try {
    commit = decodeCommit(message.string());
  } catch (error) {
    if (error instanceof NewerMachineError) throw error;
    return undefined;
  }
  const isCommit =
    Number.isSafeInteger(commit?.version) &&
    commit.version > 0 &&
    Array.isArray(commit.events) &&
    commit.state?.stationId === parseStationId(message.subject);
  return isCommit ? commit : undefined;
}

/** Makes the rows of these commits, which are in the order of the stream. `before` has the stored heads by station. */
export function batchRows(commits: readonly StreamedCommit[], before: ReadonlyMap<number, CopyHead>): BatchRows {
  const heads = new Map<number, HeadRow>();
  const events: BatchRows["events"][number][] = [];
  const intents = new Map<number, BatchRows["intents"][number]>();
  const payments = new Map<number, PaymentRow>();
  const laterEvents: LaterEvent[] = [];
  const gaps: Gap[] = [];
  const headOf = (stationId: number): CopyHead => {
    const row = heads.get(stationId);
    return row === undefined
      ? (before.get(stationId) ?? NOT_COPIED)
      : { version: row.version, offset: row.version_offset };
  };
  for (const streamed of commits) {
    const { commit, streamSequence } = streamed;
    const { stationId, organizationId } = commit.state;
    const head = headOf(stationId);
    // After a loss the next commit continues the copy, although its version was used before.
    const offset = head.offset ?? head.version + 1 - commit.version;
    const version = commit.version + offset;
    const isGap = version > head.version + 1;
    if (isGap) {
      const missing = { fromVersion: head.version + 1, toVersion: version - 1 };
      gaps.push({ stationId, ...missing, next: commit });
      // The event in place of the missing commits has the version of the first of them.
      const facts = { version: missing.fromVersion, ordinal: 0, intent_id: null, type: "audit_gap", data: missing };
      events.push(eventRow(streamed, SYSTEM, facts));
    }
    for (const [ordinal, event] of commit.events.entries()) {
      const { type, ...data } = event;
      const facts = { version, ordinal, intent_id: intentOf(event, commit), type, data };
      events.push(eventRow(streamed, actorOf(event, commit), facts));
    }
    const place = { stationId, organizationId, version, atMs: commit.atMs };
    // After a gap the state still has the newest of the missing intents, so all its intents get a row.
    for (const intent of isGap ? intentsOf(commit.state) : intentsMovedBy(commit)) {
      intents.set(intent.intentId, intentRow(place, intent));
      payments.set(intent.intentId, paymentRow(place, intent, commit.state));
    }
    laterEvents.push(...laterEventsOf(commit));
    heads.set(stationId, {
      station_id: stationId,
      version: Math.max(version, head.version),
      version_offset: offset,
      stream_sequence: streamSequence,
      collections: collectionsOf(commit.state),
      isRestored:
        heads.get(stationId)?.isRestored === true || commit.events.some(({ type }) => type === "collections_restored"),
      ...presenceOf(commit.state),
    });
  }
  return {
    events,
    intents: [...intents.values()],
    payments: [...payments.values()],
    laterEvents,
    heads: [...heads.values()],
    gaps,
  };
}

/** The part of a station that the live counts need: the end of its lease, and how many of its active devices are online. */
function presenceOf({ organizationId, lease, devices }: StationState) {
  const inUse = devices.filter(({ status }) => status === "active");
  const online = inUse.filter(({ liveness }) => liveness.state === "online").length;
  return {
    organization_id: organizationId,
    leased_until_ms: lease?.expiresAtMs ?? null,
    devices_online: online,
    devices_offline: inUse.length - online,
  };
}

function eventRow({ commit, streamSequence }: StreamedCommit, actor: Actor, event: EventFacts) {
  return {
    ...event,
    station_id: commit.state.stationId,
    organization_id: commit.state.organizationId,
    at_ms: commit.atMs,
    actor_kind: actor.kind,
    actor_id: actor.id,
    actor_name: nameOf(actor, commit.state),
    machine_version: commit.machineVersion,
    stream_sequence: streamSequence,
  };
}

/**
 * The actor of an event. A command also applies due deadlines, and the command's actor does not cause their events. The actor
 * of a confirmation that was recorded in time is the provider.
 */
function actorOf(event: StationEvent, { actor, state }: Commit): Actor {
  if (event.type === "intent_expired" || event.type === "lease_lapsed") return SYSTEM;
  if (event.type !== "provider_confirmed" || actor.kind === "provider") return actor;
  const configId = findIntent(state, event.intentId)?.provider?.configId;
  return configId === undefined ? SYSTEM : { kind: "provider", id: configId };
}

/** A change of the lease during a collection is a part of that payment's timeline. */
function intentOf(event: StationEvent, { state }: Commit): number | null {
  if (event.type === "lease_taken_over" || event.type === "lease_broken") return state.intent?.intentId ?? null;
  return "intentId" in event ? event.intentId : null;
}

/** The actor's name at the time of the commit: a device may be renamed or leave the station later. */
function nameOf(actor: Actor, state: StationState): string {
  const name = actor.kind === "cashier" ? actor.name : actor.kind === "device" ? findDevice(state, actor.id)?.name : "";
  return storableText(name ?? "");
}

function intentsMovedBy(commit: Commit): readonly PaymentIntent[] {
  const ids = new Set(commit.events.flatMap((event) => ("intentId" in event ? [event.intentId] : [])));
  return [...ids].flatMap((intentId) => findIntent(commit.state, intentId) ?? []);
}

/** All intents of the state. */
export function intentsOf(state: StationState): readonly PaymentIntent[] {
  return state.intent === null ? state.ended : [state.intent, ...state.ended];
}

export function intentRow(
  commit: {
    readonly stationId: number;
    readonly organizationId: number;
    readonly version: number;
    readonly atMs: number;
  },
  intent: PaymentIntent,
) {
  return {
    intent_id: intent.intentId,
    station_id: commit.stationId,
    organization_id: commit.organizationId,
    version: commit.version,
    at_ms: commit.atMs,
    intent: JSON.stringify(intent),
  };
}
