/** One plain sentence for each step of a payment, and whether money moved in it. Pure. */
import { formatAmount } from "../../../machines/currency.ts";
import {
  type EarlierSale,
  type EndReason,
  isEnded,
  type ReportedOutcome,
  type Route,
} from "../../../machines/payment-intent.ts";
import type { BlockedReason } from "../../../machines/standing.ts";
import type { StationEvent } from "../../../machines/station/event.ts";
import type { SettlementRefusal } from "../../../machines/station/reply.ts";
import { reasonAtEnd } from "../../../machines/station/unclear-collections.ts";
import type { AuditEvent } from "../../bus/messages/events.ts";
import type { MoneyMoved } from "../../bus/messages/timelines.ts";
import { printableStart } from "../../runtime/printable.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import type { OwnReferences } from "../sql/timeline.ts";
import type { TimelineFacts } from "./facts.ts";

export interface StepDescription {
  readonly sentence: string;
  readonly moneyMoved: MoneyMoved;
}

/** The events that are steps of a payment; the other events of a station are not. */
type TimelineEvent = Extract<StationEvent, { readonly intentId: number }> | DriverEvent | OrderEvent | GapEvent;
type DriverEvent = Extract<StationEvent, { readonly type: "lease_taken_over" | "lease_broken" }>;
type OrderEvent = Extract<StationEvent, { readonly type: "order_shown" | "order_cleared" }>;
interface GapEvent {
  readonly type: "audit_gap" | "log_lost";
  readonly fromVersion: number;
  readonly toVersion: number;
}

export const REFUSAL_REASONS: Readonly<Record<SettlementRefusal, string>> = {
  order_changed: "the order's amount was no longer the one that the guest was shown",
  order_already_paid: "the order had already been paid",
  order_voided: "the order had been voided",
  order_unknown: "the order was not found at this station",
  money_already_used: "this money had already paid elsewhere, or was closed as dealt with",
  reference_already_used: "its reference had already settled another order",
};

const OUTCOMES: Readonly<Record<ReportedOutcome, string>> = {
  reported_success: "an approval",
  reported_declined: "a decline",
  reported_cancelled: "that the payment was abandoned",
  reported_unknown: "that the outcome is unknown",
};

/** Whether money may have moved after a report: an approval may be true, and an unknown outcome may be an approval. */
const MONEY_BY_OUTCOME: Readonly<Record<ReportedOutcome, MoneyMoved>> = {
  reported_success: "maybe",
  reported_declined: "no",
  reported_cancelled: "no",
  reported_unknown: "maybe",
};

export const END_REASONS: Readonly<Record<EndReason, string>> = {
  provider_refused: "the provider refused to open a payment",
  provider_timed_out: "the provider did not answer in time",
  provider_unavailable: "the provider could not be reached",
  provider_answer_invalid: "the provider's answer was not usable",
  provider_frozen: "the provider is frozen by a kill switch",
  provider_not_configured: "no provider is configured",
  payment_declined: "the provider declined the payment",
  buyer_cancelled: "the guest cancelled at the provider",
  provider_expired: "the payment expired at the provider",
  order_already_paid: "the order was paid in another way",
  order_voided: "the order was voided",
  order_changed: "the order was changed to another amount",
  station_suspended: "the station was suspended before a QR was made",
  station_closed: "the station was closed before a QR was made",
  station_frozen: "the station was frozen by a kill switch before a QR was made",
  organization_frozen: "the organization was frozen by a kill switch before a QR was made",
  platform_frozen: "the platform was frozen by a kill switch before a QR was made",
};

/** How a provider payment differs, by the kind of its issue. */
export const DIFFERENCES: Readonly<Record<string, string>> = {
  amount_over: "of a higher amount",
  amount_under: "of a lower amount",
  amount_unknown: "of an amount that cannot be read",
  // Only events of version 0.2.0 have this one.
  amount_mismatch: "of another amount",
  currency_mismatch: "in another currency",
  account_mismatch: "on another account",
  reference_mismatch: "under another reference",
  late_money: "after its end",
  duplicate_money: "a second time",
  settlement_refused: "that its order no longer takes",
};

const REFERENCE_DIFFERENCES: Readonly<Record<OwnReferences, string>> = {
  all: "under another reference",
  none: "without a reference, so that it cannot be distinguished from other payments",
  some: "under another reference or without one",
};

/** Why a device that reported was blocked. */
const BLOCKS: Readonly<Record<BlockedReason, string>> = {
  device_suspended: "it is suspended",
  device_frozen: "it is frozen",
  station_suspended: "the station is suspended",
  station_closed: "the station is closed",
  station_frozen: "the station is frozen",
  organization_frozen: "the organization is frozen",
  platform_frozen: "the platform is frozen",
};

/** The sentence for an event of a newer program has its type, so that the timeline leaves out nothing without notice. */
export function describeStep(event: AuditEvent, facts: TimelineFacts): StepDescription {
  const who = sentenceStart(actorName(event.actor));
  const { intent } = facts;
  const step = { ...event.data, type: event.type } as unknown as TimelineEvent;
  switch (step.type) {
    case "intent_created": {
      const target = step.deviceId === null ? "" : ` on ${deviceName(facts, step.deviceId)}`;
      const amount = money(step.amountMinor, step.currency);
      return no(
        `${who} started to collect ${amount} for order ${intent.orderDisplayNumber} by ${ROUTE_NAMES[step.route]}${target}.`,
      );
    }
    case "intent_presented":
      return no(`${deviceOf(event, facts, step.deviceId)} fetched the collection.`);
    case "outcome_reported": {
      const sentence = `${deviceOf(event, facts, step.deviceId)} reported ${OUTCOMES[step.outcome]}${withReference(step.providerReference)}; this is evidence and settles nothing.`;
      return { sentence, moneyMoved: MONEY_BY_OUTCOME[step.outcome] };
    }
    case "late_evidence_kept": {
      const moneyMoved = MONEY_BY_OUTCOME[step.outcome];
      const consequence = moneyMoved === "no" ? "" : ", because money may have moved";
      const blocked = step.blockedReason;
      const when = isEnded(step.status)
        ? `after the collection had ended as ${step.status}`
        : `while the collection was ${step.status}`;
      const why = blocked === "" ? "" : `, although ${BLOCKS[blocked]}`;
      const sentence = `${deviceOf(event, facts, step.deviceId)} reported ${OUTCOMES[step.outcome]}${withReference(step.providerReference)} ${when}${why}; the report was refused and kept as evidence${consequence}.`;
      return { sentence, moneyMoved };
    }
    case "settlement_started":
      return maybe(
        `${who} attested that the payment was received${withReference(step.reference)}${confirmation(step)}.`,
      );
    case "settlement_refused":
      return no(
        `The settlement was refused, because ${REFUSAL_REASONS[step.code]}${earlierOrder(step.earlier)}; nothing was recorded.`,
      );
    case "intent_succeeded": {
      const amount = money(intent.amountMinor, intent.currency);
      const reference = withReference(facts.settlement?.reference ?? intent.attestation?.reference ?? "");
      return yes(
        `Order ${intent.orderDisplayNumber} was settled with ${amount} as transaction ${step.transactionId}${reference}.`,
      );
    }
    case "settlement_conflict":
      return yes(
        `The order was settled as transaction ${step.transactionId} although the collection had ended as ${step.status}; a person must check it.`,
      );
    case "lease_taken_over":
      return no(`${who} took the station over from ${step.fromCashierName}.`);
    case "lease_broken":
      return no(`${who} took the station from ${step.cashierName}; the next cashier goes on with the collection.`);
    case "intent_cancelled":
      return ended(`${who} cancelled the collection`, facts);
    case "qr_presented":
      return maybe(`The QR code was shown for the guest to scan${withReference(step.providerReference)}.`);
    case "provider_failed":
      return no(`The collection ended, because ${END_REASONS[step.reason]}.`);
    case "provider_confirmed":
      return yes(`${who} confirmed that the guest paid${withReference(step.providerReference)}.`);
    case "late_money_kept":
      return yes(
        `${who} asserted money that this collection, ${step.status} already, cannot take${withReference(step.providerReference)}; it settled nothing and a person must check it.`,
      );
    case "money_differs": {
      const how =
        step.issue === "reference_mismatch"
          ? REFERENCE_DIFFERENCES[facts.ownReferences]
          : (DIFFERENCES[step.issue] ?? `that does not fit (${step.issue})`);
      return maybe(`${who} asserted money for this collection ${how}; it settled nothing, and an issue names it.`);
    }
    case "intent_overtaken": {
      const twice = step.reason === "order_already_paid" ? " twice" : "";
      const what = intent.route === "attested_terminal" ? "attested" : "handed over";
      const consequence = step.moneyMayHaveMoved
        ? `; it had been ${what} already, so money may have moved${twice}`
        : "";
      return {
        sentence: `The collection ended, because ${END_REASONS[step.reason]}${consequence}.`,
        moneyMoved: step.moneyMayHaveMoved ? "maybe" : "no",
      };
    }
    case "end_reported":
      return no("The provider's side recorded that the collection had ended.");
    case "unclear_resolved":
      return no(
        event.actor.kind === "device"
          ? "After this report there is no sign left that money moved for this collection."
          : `${who} reported for certain that no money moved for this collection.`,
      );
    case "second_collection_confirmed":
      return no(
        step.earlierIntentId === null
          ? `${who} confirmed to collect although an earlier collection of the same order may have moved money.`
          : `${who} confirmed to collect although collection ${step.earlierIntentId} of the same order may have moved money.`,
      );
    case "intent_expired":
      return ended("The collection reached its deadline and expired", facts);
    case "order_shown":
      return no(`${who} set order ${intent.orderDisplayNumber} to ${money(step.amountMinor, step.currency)}.`);
    case "order_cleared":
      return no(`${who} closed order ${intent.orderDisplayNumber} as ${step.status}.`);
    case "audit_gap":
      return no(
        `The station's commits ${step.fromVersion} to ${step.toVersion} are missing here; steps may be missing with them.`,
      );
    case "log_lost":
      return no(
        `The station's log lost its commits ${step.fromVersion} to ${step.toVersion} in a failure of the message bus; they are listed here, and the station continued without them.`,
      );
    default:
      return no(`${who} caused ${(step as { type: string }).type}.`);
  }
}

/** The end of a collection by its cashier or its deadline. If a device had fetched it and was silent, the outcome is unknown. */
function ended(what: string, { intent }: TimelineFacts): StepDescription {
  if (reasonAtEnd(intent, "") !== "handoff_presented") return no(`${what}.`);
  return maybe(`${what}. Its device had fetched it and no outcome was recorded, so money may have moved.`);
}

const no = (sentence: string): StepDescription => ({ sentence, moneyMoved: "no" });
const yes = (sentence: string): StepDescription => ({ sentence, moneyMoved: "yes" });
const maybe = (sentence: string): StepDescription => ({ sentence, moneyMoved: "maybe" });

function confirmation({ confirmsReferenceAlreadyUsed }: { readonly confirmsReferenceAlreadyUsed?: true }): string {
  return confirmsReferenceAlreadyUsed === true ? ", and confirmed that it may have settled another order before" : "";
}

function earlierOrder(earlier: EarlierSale | undefined): string {
  if (earlier === undefined) return "";
  const { orderDisplayNumber, stationName, amountMinor, currency, settledAtMs } = earlier;
  const at = new Date(settledAtMs).toISOString();
  return `: order ${orderDisplayNumber} at ${stationName}, ${money(amountMinor, currency)}, at ${at}`;
}

/** The name that the device had when it acted. */
function deviceOf(event: AuditEvent, facts: TimelineFacts, deviceId: number): string {
  const name =
    event.actor.kind === "device" && event.actor.name !== "" ? event.actor.name : deviceName(facts, deviceId);
  return sentenceStart(name);
}

export const ROUTE_NAMES: Readonly<Record<Route, string>> = {
  smart_pos: "smart POS",
  dynamic_qr: "QR code",
  attested_terminal: "card terminal",
  cash: "cash",
};

/** Where a person can find out whether money moved, by route. */
export const RECORDS_TO_COMPARE: Readonly<Record<Route, string>> = {
  smart_pos: "the payment application's own records",
  dynamic_qr: "the payment provider's own records",
  attested_terminal: "the terminal's slip",
  cash: "the cash drawer",
};

/** An amount for a person, for example "EUR 12.50". */
export function money(amountMinor: string, currency: string): string {
  return `${currency} ${formatAmount(amountMinor, currency)}`;
}

/** The actor for a person: the name, or the kind and the id when there is no name. */
export function actorName(actor: AuditEvent["actor"]): string {
  if (actor.name !== "") return actor.name;
  switch (actor.kind) {
    case "registry":
      return "the platform's operator";
    case "settlement":
      return "the payment seam";
    case "provider":
      return "the payment provider";
    case "system":
      return "the system";
    case "owner":
    case "cashier":
    case "reconciliation_operator":
    case "device":
      return `${actor.kind} ${actor.id}`;
  }
}

export function deviceName(facts: Pick<TimelineFacts, "deviceNames">, deviceId: number): string {
  const name = facts.deviceNames.get(deviceId) ?? "";
  return name === "" ? `device ${deviceId}` : name;
}

/** The same words at the beginning of a sentence. */
export function sentenceStart(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The addition that names a reference, or nothing when there is none. */
export function withReference(reference: string): string {
  return reference === "" ? "" : `, reference ${quoted(reference)}`;
}

/** Text from a device or a provider, escaped and shortened. The entry's data has the original text. */
function quoted(text: string): string {
  return printableStart(text, AUDIT_LIMITS.quotedCharacters);
}
