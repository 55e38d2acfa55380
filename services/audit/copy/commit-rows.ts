/** What one commit adds to the audit copy. Pure: a commit and its place in the stream in, rows out. */
import type { Actor } from "../../../machines/actor.ts";
import type { PaymentIntent } from "../../../machines/payment-intent.ts";
import type { Commit } from "../../../machines/station/commit.ts";
import type { StationEvent } from "../../../machines/station/event.ts";
import { findDevice, findIntent, type StationState } from "../../../machines/station/state.ts";
import { plainText } from "./stored-json.ts";

/** A commit as it was read from the stream. */
export interface CopiedCommit {
  readonly commit: Commit;
  readonly streamSequence: number;
}

/** A commit with its place in the trail: its own version, unless the log has used versions twice. */
export interface PlacedCommit extends CopiedCommit {
  readonly trailVersion: number;
}

export interface EventRow {
  readonly station_id: number;
  readonly version: number;
  readonly ordinal: number;
  readonly organization_id: number;
  readonly intent_id: number | null;
  readonly at_ms: number;
  readonly type: string;
  readonly actor_kind: string;
  readonly actor_id: number;
  readonly actor_name: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly machine_version: number;
  readonly stream_sequence: number;
}

export interface IntentRow {
  readonly intent_id: number;
  readonly station_id: number;
  readonly organization_id: number;
  readonly version: number;
  readonly at_ms: number;
  readonly intent: string;
}

export interface CommitRows {
  readonly events: readonly EventRow[];
  readonly intents: readonly IntentRow[];
}

/** The event that stands where commits are missing; it takes the place of the first of them. */
export const AUDIT_GAP = "audit_gap";

const SYSTEM: Actor = { kind: "system", id: 0 };

/** `previousVersion` is the newest version of the station's trail before; zero when there was none. */
export function commitRows(copied: PlacedCommit, previousVersion: number): CommitRows {
  const { commit } = copied;
  const isGap = copied.trailVersion > previousVersion + 1;
  const events = commit.events.map((event, ordinal) => eventRow(copied, event, ordinal));
  // Past a gap the state still has the newest intents of what is missing, so all of them are taken.
  const intents = isGap ? intentsOf(commit.state) : intentsMovedBy(commit);
  return {
    events: isGap ? [gapRow(copied, previousVersion), ...events] : events,
    intents: intents.map((intent) => intentRow(copied, intent)),
  };
}

function eventRow(
  { commit, streamSequence, trailVersion }: PlacedCommit,
  event: StationEvent,
  ordinal: number,
): EventRow {
  const { type, ...data } = event;
  const actor = actorOf(event, commit);
  return {
    station_id: commit.state.stationId,
    version: trailVersion,
    ordinal,
    organization_id: commit.state.organizationId,
    intent_id: intentOf(event, commit),
    at_ms: commit.atMs,
    type,
    actor_kind: actor.kind,
    actor_id: actor.id,
    actor_name: nameOf(actor, commit.state),
    data,
    machine_version: commit.machineVersion,
    stream_sequence: streamSequence,
  };
}

/**
 * Who did it. A command applies the deadlines that are due: what these bring about is not the doing of the command's actor,
 * and a payment that was confirmed in time is its provider's.
 */
function actorOf(event: StationEvent, { actor, state }: Commit): Actor {
  if (event.type === "intent_expired" || event.type === "lease_lapsed") return SYSTEM;
  if (event.type !== "provider_confirmed" || actor.kind === "provider") return actor;
  const configId = findIntent(state, event.intentId)?.provider?.configId;
  return configId === undefined ? SYSTEM : { kind: "provider", id: configId };
}

/** A change of driver in the middle of a collection is a part of that payment's story. */
function intentOf(event: StationEvent, { state }: Commit): number | null {
  if (event.type === "lease_taken_over" || event.type === "lease_broken") return state.intent?.intentId ?? null;
  return "intentId" in event ? event.intentId : null;
}

function gapRow({ commit, streamSequence, trailVersion }: PlacedCommit, previousVersion: number): EventRow {
  const fromVersion = previousVersion + 1;
  const toVersion = trailVersion - 1;
  return {
    station_id: commit.state.stationId,
    version: fromVersion,
    ordinal: 0,
    organization_id: commit.state.organizationId,
    intent_id: null,
    at_ms: commit.atMs,
    type: AUDIT_GAP,
    actor_kind: SYSTEM.kind,
    actor_id: SYSTEM.id,
    actor_name: "",
    data: { fromVersion, toVersion },
    machine_version: commit.machineVersion,
    stream_sequence: streamSequence,
  };
}

/** The name at the time of the commit; a device may be renamed or leave the station later. */
function nameOf(actor: Actor, state: StationState): string {
  if (actor.kind === "cashier") return plainText(actor.name);
  return actor.kind === "device" ? plainText(findDevice(state, actor.id)?.name ?? "") : "";
}

function intentsMovedBy(commit: Commit): readonly PaymentIntent[] {
  const ids = new Set(commit.events.flatMap((event) => ("intentId" in event ? [event.intentId] : [])));
  return [...ids].flatMap((intentId) => findIntent(commit.state, intentId) ?? []);
}

/** Every intent that the state tells of. */
export function intentsOf(state: StationState): readonly PaymentIntent[] {
  return state.intent === null ? state.ended : [state.intent, ...state.ended];
}

function intentRow({ commit, trailVersion }: PlacedCommit, intent: PaymentIntent): IntentRow {
  return {
    intent_id: intent.intentId,
    station_id: commit.state.stationId,
    organization_id: commit.state.organizationId,
    version: trailVersion,
    at_ms: commit.atMs,
    intent: JSON.stringify(intent),
  };
}
