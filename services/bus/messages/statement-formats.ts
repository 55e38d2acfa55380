/** The words of statement files that operations and parsers share. */

/** What a line of a statement is. The sign of its amount is the merchant's view: money in is positive. */
export const LINE_KINDS = [
  "payment",
  "refund",
  "refund_reversal",
  "chargeback",
  "chargeback_reversal",
  "fee",
  "payout",
  "planned_payout",
  "payout_reversal",
  "adjustment",
  "conversion",
  "bank_credit",
  "bank_debit",
  /** A cash row in the statement of a provider of points of sale. */
  "cash_payment",
  /**
   * A failed, cancelled, pending or informational row: it is stored and never matched. `NOT_MONEY_REASON` of its details
   * says why.
   */
  "not_money",
] as const;
export type LineKind = (typeof LINE_KINDS)[number];

/** The encodings that a statement file may have. */
export const ENCODINGS = [
  "utf-8",
  "utf-16le",
  "utf-16be",
  "windows-1252",
  "iso-8859-1",
  "iso-8859-15",
  "windows-1250",
  "iso-8859-2",
  "macintosh",
  "cp850",
  "cp437",
] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** What divides the fields of a CSV record. */
export const DELIMITERS = [",", ";", "\t", "|"] as const;
