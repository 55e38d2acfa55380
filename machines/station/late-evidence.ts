/** Which late evidence a station has kept, so that a device that reports without end does not fill the log. */
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

/**
 * 64 bits (cyrb53's mixing): of the few contents that are remembered of one intent no two are alike by chance. A device that
 * looked for two that are would only keep its own report out.
 */
function digestOf(content: string): string {
  let low = 0xdeadbeef;
  let high = 0x41c6ce57;
  for (let at = 0; at < content.length; at += 1) {
    const unit = content.charCodeAt(at);
    low = Math.imul(low ^ unit, 2_654_435_761);
    high = Math.imul(high ^ unit, 1_597_334_677);
  }
  const mixedLow = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  const mixedHigh =
    Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(mixedLow ^ (mixedLow >>> 13), 3_266_489_909);
  return `${(mixedHigh >>> 0).toString(36)}.${(mixedLow >>> 0).toString(36)}`;
}
