/** What the sentences of a timeline are made from. */
import { formatAmount } from "../../../machines/currency.ts";
import type { PaymentIntent, Route } from "../../../machines/payment-intent.ts";
import type { AuditEvent } from "../../bus/messages/events.ts";
import { printableStart } from "../../runtime/printable.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import type { AttributedMoney } from "../sql/read-attribution.ts";
import type { IssuesOfPayment, ReferencesSaid } from "../sql/read-closed-issues.ts";
import type { SettlementFacts } from "../sql/read-events.ts";
import type { SwitchThrown } from "../sql/read-switches.ts";

export type MoneyMoved = "no" | "yes" | "maybe";

export interface TimelineFacts {
  readonly intent: PaymentIntent;
  /** Oldest first. */
  readonly events: readonly AuditEvent[];
  /** What the payment seam recorded, when it settled. */
  readonly settlement: SettlementFacts | undefined;
  /** As the devices were called when the payment began. */
  readonly deviceNames: ReadonlyMap<number, string>;
  /** Kill switches that held or were thrown while it was under way, oldest first. */
  readonly switches: readonly SwitchThrown[];
  /** Its provider's money that an operator has attributed since, oldest first. */
  readonly attributed: readonly AttributedMoney[];
  /** What people have said of its provider's money that did not fit. */
  readonly issues: IssuesOfPayment;
  readonly referencesSaid: ReferencesSaid;
  /** False when the newest commits could not be waited for. */
  readonly isComplete: boolean;
}

export const ROUTE_NAMES: Readonly<Record<Route, string>> = {
  smart_pos: "smart POS",
  dynamic_qr: "QR code",
  attested_terminal: "card terminal",
  cash: "cash",
};

/** Where a person finds out whether money moved, by route. */
export const RECORDS_TO_COMPARE: Readonly<Record<Route, string>> = {
  smart_pos: "the payment application's own records",
  dynamic_qr: "the payment provider's own records",
  attested_terminal: "the terminal's slip",
  cash: "the cash drawer",
};

/** Money for a person, for example "EUR 12.50". */
export function money(amountMinor: string, currency: string): string {
  return `${currency} ${formatAmount(amountMinor, currency)}`;
}

/** Who did it, for a person; without a name, what and which one. */
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

/** What a device or a provider sent, in a sentence: escaped, and cut where it is long. The entry's data has it verbatim. */
export function quoted(text: string): string {
  return printableStart(text, AUDIT_LIMITS.quotedCharacters);
}
