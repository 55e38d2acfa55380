/** Which late evidence a station has kept, so that a device that reports without end does not fill the log. */
import { digestOf } from "../digest.ts";
import { doubtOfOutcome } from "../intent-machine.ts";
import { STATE_LIMITS } from "../settings.ts";
import type { Command } from "./outcome.ts";
import type { LateEvidence, StationState } from "./state.ts";

/**
 * What is remembered once this report is kept; undefined when it is not to be kept: its content is known, or there are too
 * many of its kind. The two kinds have their own bound, so that no number of declines keeps a success from being heard.
 */
export function rememberEvidence(
  { lateEvidence }: Pick<StationState, "lateEvidence">,
  { intentId, outcome, providerReference, providerCode }: Command<"intent_report">,
): StationState["lateEvidence"] | undefined {
  const content = JSON.stringify([outcome, providerReference, providerCode]);
  const digest = digestOf(content);
  const kind = doubtOfOutcome(outcome) === undefined ? "other" : "moved";
  const nothing: LateEvidence = { intentId, moved: [], other: [] };
  const known = lateEvidence.find((kept) => kept.intentId === intentId) ?? nothing;
  const ofKind = known[kind];
  if (ofKind.includes(digest) || ofKind.length >= STATE_LIMITS.lateEvidencePerIntent) return undefined;
  const others = lateEvidence.filter((kept) => kept.intentId !== intentId);
  return [...others, { ...known, [kind]: [...ofKind, digest] }].slice(-STATE_LIMITS.lateEvidenceIntents);
}
