/**
 * The entries of a timeline that no station has committed: kill switches, and the decisions of people about provider payments
 * that did not fit. Pure.
 */
import type { Timeline } from "../../bus/messages/timelines.ts";
import type { Attribution, AttributionHistory, ClosedIssue, SwitchChange } from "../sql/timeline.ts";
import type { TimelineFacts } from "./facts.ts";
import { actorName, DIFFERENCES, deviceName, money, sentenceStart, withReference } from "./sentences.ts";

export type Entry = Timeline["entries"][number];

/** A kill switch that changed, or that was on when the payment began. */
export function switchEntry({ atMs, action, subject, actor, reason }: SwitchChange, facts: TimelineFacts): Entry {
  const who = actorName(actor);
  const does = action.endsWith("_unfrozen") ? "lifted the freeze of" : "froze";
  return {
    atMs,
    type: action,
    actor: { ...actor, name: who },
    sentence: `${sentenceStart(who)} ${does} ${frozen(subject, facts)}${reason === "" ? "" : `. Reason: ${reason}`}`,
    moneyMoved: "no",
    data: { subject, reason },
  };
}

function frozen({ kind, id }: SwitchChange["subject"], facts: TimelineFacts): string {
  if (kind === "device") return deviceName(facts, id);
  return kind === "provider_config" ? "the payment provider" : `the ${kind}`;
}

/** An operator attributed a provider payment to an order. The payment named this intent and did not settle it. */
export function attributionEntry(attribution: Attribution): Entry {
  const { issueId, orderId, orderDisplayNumber, attributionIntentId, transactionId, reason, by } = attribution;
  const who = actorName(by);
  const amount = money(attribution.amountMinor, attribution.currency);
  return {
    atMs: attribution.attributedAtMs,
    type: "provider_issue_attributed",
    actor: { ...by, name: who },
    sentence: `${sentenceStart(who)} attributed the provider's ${amount}${withReference(attribution.reference)} of issue ${issueId} to order ${orderDisplayNumber}, which collection ${attributionIntentId} shows. Reason: ${reason}`,
    moneyMoved: "no",
    data: { issueId, orderId, attributionIntentId, transactionId, reason },
  };
}

/** A person closed an issue of this payment, because it was resolved outside. */
export function closedIssueEntry({ issueId, kind, closedAtMs, by, reason }: ClosedIssue): Entry {
  const who = actorName(by);
  return {
    atMs: closedAtMs,
    type: "provider_issue_closed",
    actor: { ...by, name: who },
    sentence: `${sentenceStart(who)} closed issue ${issueId} of the provider's money (${kind}). Reason: ${reason}`,
    moneyMoved: "no",
    data: { issueId, kind, reason },
  };
}

const SYSTEM = { kind: "system", id: 0, name: "" } as const;

/** The whole timeline of an order that an operator's attribution paid: from the issue to the transaction. */
export function attributionTimeline(attribution: AttributionHistory): Timeline {
  const {
    attributionIntentId: intentId,
    orderId,
    orderDisplayNumber,
    transactionId,
    issueId,
    by,
    reason,
  } = attribution;
  const { amountMinor, currency, reference, settledAtMs, issueKind: kind, meantForIntentId } = attribution;
  const amount = money(amountMinor, currency);
  const transaction = `transaction ${transactionId}${withReference(reference)}`;
  const who = actorName(by);
  const { configId } = attribution;
  const source = configId === null ? SYSTEM : ({ kind: "provider", id: configId, name: "" } as const);
  const what = configId === null ? "A statement had" : "The payment provider asserted";
  const seam = { kind: "settlement", id: 0, name: "" } as const;
  return {
    intentId,
    stationId: attribution.stationId,
    status: "succeeded",
    summary: `${amount} for order ${orderDisplayNumber} was paid by the provider's money of issue ${issueId} as ${transaction}; ${who} attributed it. Reason: ${reason}`,
    moneyMoved: "yes",
    entries: [
      {
        atMs: attribution.openedAtMs,
        type: "provider_issue_opened",
        actor: { ...source, name: actorName(source) },
        sentence: `${what} ${amount}${withReference(reference)}, ${whyNotTaken(attribution)}: issue ${issueId} was opened.`,
        moneyMoved: "maybe",
        data: { issueId, kind, meantForIntentId },
      },
      {
        atMs: settledAtMs,
        type: "intent_succeeded",
        actor: { ...seam, name: actorName(seam) },
        sentence: `Order ${orderDisplayNumber} was settled with ${amount} as ${transaction}.`,
        moneyMoved: "yes",
        data: { intentId, orderId, transactionId, reference, amountMinor, currency, settledAtMs },
      },
      {
        atMs: attribution.attributedAtMs,
        type: "provider_issue_attributed",
        actor: { ...by, name: who },
        sentence: `${sentenceStart(who)} had attributed the money of issue ${issueId} to order ${orderDisplayNumber}. Reason: ${reason}`,
        moneyMoved: "no",
        data: { issueId, orderId, reason },
      },
    ],
  };
}

function whyNotTaken({ issueKind, meantForIntentId }: AttributionHistory): string {
  const how = DIFFERENCES[issueKind];
  if (meantForIntentId === null) return "for which no payment was registered";
  return how === undefined
    ? `which did not fit collection ${meantForIntentId} (${issueKind})`
    : `for collection ${meantForIntentId} and ${how}`;
}
