/**
 * The three device views as text, up to the moment that changes with every answer: a view is made once per commit by the
 * machines' pure functions and then served from here. What a display shows is the station's, in two variants at most
 * (with a QR payload and without); the other two are one device's own.
 */
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { blockedReason, type KillSwitches } from "../../machines/standing.ts";
import { findDevice, type StationState } from "../../machines/station/state.ts";
import { assignedIntent, assignmentView } from "../../machines/views/assignment.ts";
import { deviceSnapshotView } from "../../machines/views/device-snapshot.ts";
import { displayView, rendersQrOn } from "../../machines/views/display.ts";
import { etagOf } from "./etag.ts";

/** The reads that are answered from memory, at once: no promise, no context object, no closure per request (design §2.2). */
export type PollName = "display" | "self" | "assignment";

/** A view's text with all that is said of it on the wire. */
export interface RenderedText {
  /** Valid from here, because a clock that was set back must not keep a later view alive. */
  readonly madeAtMs: number;
  /** From this moment on the same commit gives another view. */
  readonly validUntilMs: number;
  /** The body up to `server_time`'s value; `TAIL` follows it. */
  readonly head: string;
  readonly etag: string;
  /**
   * The value of `Content-Type` and, behind it, the other headers of a fresh answer; the same from `ETag` on for an
   * unchanged one. The server writes a value as it is, and each header is a call into it: written as one, a poll costs
   * a quarter less beside its system calls (1.7 instead of 2.4 µs, measured with pipelined requests).
   */
  readonly freshHeaders: string;
  readonly unchangedHeaders: string;
}

export interface Rendered extends RenderedText {
  /** The commit and the switches it was made from; a view of others is void. */
  readonly commit: Uint8Array;
  readonly switches: KillSwitches;
  /** Why the device is blocked; the empty string when it is not. */
  readonly blocked: string;
  /** The intent that a fresh fetch of this assignment presents; null when there is none to present. */
  readonly presents: number | null;
  /** Answers without a body since the last one with it, which shows that the device reads. */
  unchangedInARow: number;
}

/** Each poll is asked of the gateway again, and an answer to one device is no answer to another (design §4). */
const COMMON_HEADERS = "Cache-Control: private, no-cache\r\nVary: Authorization\r\nX-Content-Type-Options: nosniff";

/** What follows the value of `server_time`. */
export const TAIL = '"}';

/** What a view is made from. */
export interface RenderSource {
  readonly commit: Uint8Array;
  readonly switches: KillSwitches;
  readonly nowMs: number;
  /** The display's text in this variant, as it was made for another device of the station, or made now by `make`. */
  displayText(rendersQr: boolean, make: () => RenderedText): RenderedText;
}

/** Makes one view; undefined when the station does not have the device. */
export function render(
  name: PollName,
  state: StationState,
  deviceId: number,
  from: RenderSource,
): Rendered | undefined {
  const device = findDevice(state, deviceId);
  if (device === undefined) return undefined;
  const { organizationId, stationId, status: stationStatus } = state;
  const blocked = blockedReason({ organizationId, stationId, stationStatus, device }, from.switches);
  const { commit, switches, nowMs } = from;
  const facts = { commit, switches, blocked, presents: null };
  if (name === "self") {
    const view = deviceSnapshotView(state, deviceId, switches) as object;
    return toRendered(toText({ view, nowMs, hasEtag: false, validUntilMs: null }), facts);
  }
  if (name === "display") {
    const rendersQr = rendersQrOn(state, device, switches);
    const text = from.displayText(rendersQr, () =>
      toText({ ...displayView(state, nowMs, rendersQr), nowMs, hasEtag: true }),
    );
    return toRendered(text, facts);
  }
  const intent = assignedIntent(state, deviceId, nowMs);
  const view = { assignment: intent === null ? null : assignmentView(intent) };
  const presents = intent?.status === "created" ? intent.intentId : null;
  return toRendered(toText({ view, nowMs, hasEtag: true, validUntilMs: lapseOf(intent) }), { ...facts, presents });
}

/** Member by member, so that every view has the same shape in the engine, whichever poll it answers. */
function toRendered(text: RenderedText, facts: Omit<Rendered, keyof RenderedText | "unchangedInARow">): Rendered {
  return {
    commit: facts.commit,
    switches: facts.switches,
    madeAtMs: text.madeAtMs,
    validUntilMs: text.validUntilMs,
    blocked: facts.blocked,
    head: text.head,
    etag: text.etag,
    freshHeaders: text.freshHeaders,
    unchangedHeaders: text.unchangedHeaders,
    presents: facts.presents,
    unchangedInARow: 0,
  };
}

/** A settlement under way does not lapse (I7). */
function lapseOf(intent: PaymentIntent | null): number | null {
  return intent === null || intent.status === "settling" ? null : intent.expiresAtMs;
}

function toText(made: {
  readonly view: object;
  readonly nowMs: number;
  readonly hasEtag: boolean;
  readonly validUntilMs: number | null;
}): RenderedText {
  const { view, nowMs, hasEtag, validUntilMs } = made;
  const text = JSON.stringify(view);
  const etag = etagOf(text);
  return {
    madeAtMs: nowMs,
    validUntilMs: validUntilMs ?? Number.POSITIVE_INFINITY,
    head: `${text.slice(0, -1)},"server_time":"`,
    etag,
    freshHeaders: `application/json\r\n${COMMON_HEADERS}${hasEtag ? `\r\nETag: ${etag}` : ""}`,
    unchangedHeaders: `${etag}\r\n${COMMON_HEADERS}`,
  };
}
