/** The story of an order that was paid by an operator's attribution: from the issue to the transaction. Pure. */
import type { getIntentTimeline } from "../../bus/messages/timelines.ts";
import type { ReplyOf } from "../../bus/operation.ts";
import type { AttributionFacts } from "../sql/read-attribution.ts";
import { actorName, money, sentenceStart, withReference } from "./facts.ts";
import { DIFFERENCES } from "./sentences.ts";

type Reply = ReplyOf<typeof getIntentTimeline>;

/** What is known of it: which issue, who attributed it, why, and when. */
export function tellAttribution(intentId: number, facts: AttributionFacts): Reply {
  const { stationId, orderDisplayNumber, transactionId, reference, issueId, issueKind, configId, by, reason } = facts;
  const amount = money(facts.amountMinor, facts.currency);
  const provider = { kind: "provider", id: configId, name: "" } as const;
  const seam = { kind: "settlement", id: 0, name: "" } as const;
  const who = actorName(by);
  const { meantForIntentId, amountMinor, currency } = facts;
  const settlement = { transactionId, reference, amountMinor, currency };
  const entries: Reply["entries"] = [
    {
      atMs: facts.openedAtMs,
      type: "provider_issue_opened",
      actor: { ...provider, name: actorName(provider) },
      sentence: `The payment provider asserted ${amount}${withReference(reference)}, ${doesNotFit(facts)}: issue ${issueId} was opened.`,
      moneyMoved: "maybe",
      data: { issueId, kind: issueKind, meantForIntentId },
    },
    {
      atMs: facts.settledAtMs,
      type: "intent_succeeded",
      actor: { ...seam, name: actorName(seam) },
      sentence: `Order ${orderDisplayNumber} was settled with ${amount} as transaction ${transactionId}${withReference(reference)}.`,
      moneyMoved: "yes",
      data: { intentId, orderId: facts.orderId, ...settlement, settledAtMs: facts.settledAtMs },
    },
    {
      atMs: facts.attributedAtMs,
      type: "provider_issue_attributed",
      actor: { ...by, name: who },
      sentence: `${sentenceStart(who)} had attributed the money of issue ${issueId} to order ${orderDisplayNumber}, because: ${reason}`,
      moneyMoved: "no",
      data: { issueId, orderId: facts.orderId, reason },
    },
  ];
  return {
    intentId,
    stationId,
    status: "succeeded",
    summary: `${amount} for order ${orderDisplayNumber} was paid by the provider's money of issue ${issueId} as transaction ${transactionId}${withReference(reference)}; ${who} attributed it, because: ${reason}`,
    moneyMoved: "yes",
    entries,
  };
}

function doesNotFit({ issueKind, meantForIntentId }: AttributionFacts): string {
  const how = DIFFERENCES[issueKind];
  if (meantForIntentId === null) return "for which no payment was registered";
  return how === undefined
    ? `which did not fit collection ${meantForIntentId} (${issueKind})`
    : `for collection ${meantForIntentId} and ${how}`;
}
