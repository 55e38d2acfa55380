/** Bounds the evidence that a station keeps about an intent, so that a device that reports for ever cannot fill the log. */
import { digestOf } from "../digest.ts";
import { reasonOfOutcome } from "../intent-machine.ts";
import type { ReportedOutcome } from "../payment-intent.ts";
import { STATE_LIMITS } from "../settings.ts";
import type { LateEvidence, StationState } from "./state.ts";

/** The kind of evidence. Each kind has a separate bound, so that one cannot displace another. */
type EvidenceKind = Exclude<keyof LateEvidence, "intentId">;

export interface Evidence {
  readonly intentId: number;
  readonly kind: EvidenceKind;
  /** The same content is the same evidence, even under another idempotency key. */
  readonly content: readonly (string | number)[];
}

type Kept = Pick<StationState, "lateEvidence">;

export function kindOfOutcome(outcome: ReportedOutcome): EvidenceKind {
  const reason = reasonOfOutcome(outcome);
  if (reason === undefined) return "other";
  return reason === "success_reported" ? "asserted" : "unknown";
}

export function isKept(state: Kept, { intentId, kind, content }: Evidence): boolean {
  return keptOf(state, intentId)[kind].includes(digestOfContent(content));
}

/** Whether the station can keep more evidence of this kind without dropping an older one. */
export function hasRoom(state: Kept, { intentId, kind }: Evidence): boolean {
  return keptOf(state, intentId)[kind].length < STATE_LIMITS.lateEvidencePerIntent;
}

/** The evidence of the station with this one added: the newest of each kind, for the newest intents. */
export function rememberEvidence(
  state: Kept,
  { intentId, kind, content }: Evidence,
): { readonly lateEvidence: StationState["lateEvidence"] } {
  const known = keptOf(state, intentId);
  const ofKind = [...known[kind], digestOfContent(content)].slice(-STATE_LIMITS.lateEvidencePerIntent);
  const others = state.lateEvidence.filter((kept) => kept.intentId !== intentId);
  return { lateEvidence: [...others, { ...known, [kind]: ofKind }].slice(-STATE_LIMITS.lateEvidenceIntents) };
}

function keptOf({ lateEvidence }: Kept, intentId: number): LateEvidence {
  const nothing: LateEvidence = { intentId, asserted: [], unknown: [], other: [] };
  return lateEvidence.find((kept) => kept.intentId === intentId) ?? nothing;
}

function digestOfContent(content: Evidence["content"]): string {
  return digestOf(JSON.stringify(content));
}
