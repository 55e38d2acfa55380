/**
 * PayPal's transaction event codes, T and four digits: the first two are the group, the last two the event. A credit and a
 * debit of one code can be two kinds: a payment that is a debit was sent by the merchant.
 */
import type { LineKind } from "../format.ts";

export interface PaypalEvent {
  readonly credit: LineKind;
  readonly debit: LineKind;
  /** Why no money has moved, for the kind `not_money`. */
  readonly reason?: string;
}

const both = (kind: LineKind): PaypalEvent => ({ credit: kind, debit: kind });
/** The event holds money of the balance for a while, or only displays something. */
const noMoney = (reason: string): PaypalEvent => ({ ...both("not_money"), reason });

/** Single events, which come before their groups. */
const CODES: Readonly<Record<string, PaypalEvent>> = {
  T1101: both("payout_reversal"),
  T1105: noMoney("hold"),
  T1106: { credit: "chargeback_reversal", debit: "chargeback" },
  T1107: { credit: "adjustment", debit: "refund" },
  T1108: both("fee"),
  T1109: both("fee"),
  T1110: noMoney("hold"),
  T1111: noMoney("hold"),
  T1113: { credit: "adjustment", debit: "refund" },
  T1201: { credit: "chargeback_reversal", debit: "chargeback" },
  T1202: { credit: "chargeback_reversal", debit: "chargeback" },
  T1205: { credit: "chargeback_reversal", debit: "chargeback" },
  T1207: { credit: "chargeback_reversal", debit: "chargeback" },
  T1208: { credit: "chargeback_reversal", debit: "chargeback" },
};

const GROUPS: Readonly<Record<string, PaypalEvent>> = {
  /** Between accounts of PayPal. */
  T00: { credit: "payment", debit: "adjustment" },
  T01: both("fee"),
  T02: both("conversion"),
  /** To and from the bank. */
  T03: both("adjustment"),
  T04: { credit: "payout_reversal", debit: "payout" },
  T06: { credit: "payout_reversal", debit: "payout" },
  T13: noMoney("authorization"),
  T15: noMoney("hold"),
  T17: { credit: "payout_reversal", debit: "payout" },
  T21: noMoney("hold"),
  T98: noMoney("display only"),
};

/** A code that is not here is an adjustment: it moves the balance, and what it is for is not guessed. */
export function paypalEvent(code: string): PaypalEvent {
  return CODES[code] ?? GROUPS[code.slice(0, 3)] ?? both("adjustment");
}
