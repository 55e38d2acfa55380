/** What is told in a payment's timeline although no station committed it: freezes that held, and what became of its money. Pure. */
import type { getIntentTimeline } from "../../bus/messages/timelines.ts";
import type { ReplyOf } from "../../bus/operation.ts";
import type { AttributedMoney } from "../sql/read-attribution.ts";
import type { ClosedIssue } from "../sql/read-closed-issues.ts";
import type { SwitchThrown } from "../sql/read-switches.ts";
import { actorName, deviceName, money, sentenceStart, type TimelineFacts, withReference } from "./facts.ts";

type Entry = ReplyOf<typeof getIntentTimeline>["entries"][number];

/** A kill switch that was thrown, or that held when the payment began. */
export function tellSwitch({ atMs, action, subject, actor, reason }: SwitchThrown, facts: TimelineFacts): Entry {
  const who = actorName(actor);
  const does = action.endsWith("_unfrozen") ? "lifted the freeze of" : "froze";
  return {
    atMs,
    type: action,
    actor: { ...actor, name: who },
    sentence: `${sentenceStart(who)} ${does} ${frozen(subject, facts)}${reason === "" ? "" : `, because: ${reason}`}`,
    moneyMoved: "no",
    data: { subject, reason },
  };
}

function frozen({ kind, id }: SwitchThrown["subject"], facts: TimelineFacts): string {
  switch (kind) {
    case "device":
      return deviceName(facts, id);
    case "provider_config":
      return "the payment provider";
    default:
      return `the ${kind}`;
  }
}

/** The provider's money for this payment, which it did not take, has paid an order by an operator's word. */
export function tellAttributedMoney(attributed: AttributedMoney): Entry {
  const { issueId, orderId, orderDisplayNumber, attributionIntentId, transactionId, reason, by } = attributed;
  const who = actorName(by);
  const amount = money(attributed.amountMinor, attributed.currency);
  return {
    atMs: attributed.attributedAtMs,
    type: "provider_issue_attributed",
    actor: { ...by, name: who },
    sentence: `${sentenceStart(who)} attributed the provider's ${amount}${withReference(attributed.reference)} of issue ${issueId} to order ${orderDisplayNumber}, as payment ${attributionIntentId} tells, because: ${reason}`,
    moneyMoved: "no",
    data: { issueId, orderId, attributionIntentId, transactionId, reason },
  };
}

/** An issue of this payment's money was closed as dealt with: who said so, and why. */
export function tellClosedIssue({ issueId, kind, closedAtMs, by, reason }: ClosedIssue): Entry {
  const who = actorName(by);
  return {
    atMs: closedAtMs,
    type: "provider_issue_closed",
    actor: { ...by, name: who },
    sentence: `${sentenceStart(who)} closed issue ${issueId} of the provider's money (${kind}), because: ${reason}`,
    moneyMoved: "no",
    data: { issueId, kind, reason },
  };
}
