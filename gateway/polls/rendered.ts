/**
 * The three device views as text, up to the moment that changes with every answer: a view is made once per commit and
 * device by the machines' pure functions and then served from here.
 */
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { blockedReason, type KillSwitches } from "../../machines/standing.ts";
import { findDevice, type StationState } from "../../machines/station/state.ts";
import { assignedIntent, assignmentView } from "../../machines/views/assignment.ts";
import { deviceSnapshotView } from "../../machines/views/device-snapshot.ts";
import { displayView } from "../../machines/views/display.ts";
import { etagOf } from "./etag.ts";
import type { PollName } from "./poll-name.ts";

export interface Rendered {
  /** The commit and the switches it was made from; a view of others is void. */
  readonly commit: Uint8Array;
  readonly switches: KillSwitches;
  /** Valid from here, because a clock that was set back must not keep a later view alive. */
  readonly madeAtMs: number;
  /** From this moment on the same commit gives another view. */
  readonly validUntilMs: number;
  /** Why the device is blocked; the empty string when it is not. */
  readonly blocked: string;
  /** The body up to `server_time`'s value; `TAIL` follows it. */
  readonly head: string;
  readonly etag: string;
  /** The intent that a fresh fetch of this assignment presents; null when there is none to present. */
  readonly presents: number | null;
}

/** What follows the value of `server_time`. */
export const TAIL = '"}';

/** Makes one view; undefined when the station does not have the device. */
export function render(
  name: PollName,
  state: StationState,
  deviceId: number,
  from: { readonly commit: Uint8Array; readonly switches: KillSwitches; readonly nowMs: number },
): Rendered | undefined {
  const device = findDevice(state, deviceId);
  if (device === undefined) return undefined;
  const { organizationId, stationId, status: stationStatus } = state;
  const blocked = blockedReason({ organizationId, stationId, stationStatus, device }, from.switches);
  const { commit, switches, nowMs } = from;
  const facts = { commit, switches, blocked, madeAtMs: nowMs };
  if (name === "self") {
    return finish(facts, deviceSnapshotView(state, deviceId, switches) as object, null);
  }
  if (name === "display") {
    const { view, validUntilMs } = displayView(state, nowMs);
    return finish(facts, view, validUntilMs);
  }
  const intent = assignedIntent(state, deviceId, nowMs);
  const assignment = { assignment: intent === null ? null : assignmentView(intent) };
  const presents = intent?.status === "created" ? intent.intentId : null;
  return finish(facts, assignment, lapseOf(intent), presents);
}

/** A settlement under way does not lapse (I7). */
function lapseOf(intent: PaymentIntent | null): number | null {
  return intent === null || intent.status === "settling" ? null : intent.expiresAtMs;
}

function finish(
  facts: Pick<Rendered, "commit" | "switches" | "blocked" | "madeAtMs">,
  view: object,
  validUntilMs: number | null,
  presents: number | null = null,
): Rendered {
  const text = JSON.stringify(view);
  return {
    ...facts,
    validUntilMs: validUntilMs ?? Number.POSITIVE_INFINITY,
    head: `${text.slice(0, -1)},"server_time":"`,
    etag: etagOf(text),
    presents,
  };
}
