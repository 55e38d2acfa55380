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

/** Why a parser refuses a whole file. */
export type StatementRefusal =
  /** The file is certainly not of the declared format. */
  | "not_this_format"
  /** No dictionary has this header: it needs a mapping. */
  | "unknown_header"
  | "unsupported_version"
  /** It is of the same family and still no statement: camt.052. */
  | "not_a_statement"
  | "doctype_refused"
  /** The XML is not well-formed. */
  | "not_well_formed"
  /** A line, a record or an element is longer than a parser holds in memory. */
  | "line_too_long"
  /** NUL bytes, or bytes that are no text in the declared encoding. */
  | "not_text"
  | "truncated"
  | "archive_refused"
  | "too_large"
  /** The dates can be read in two ways, and the mapping does not say which. */
  | "ambiguous_dates"
  /** The mapping does not fit the file. */
  | "mapping_refused";

/** Why a file is refused or held: the parsers' reasons, and those of its import and of a mapping's test. */
export type FileRefusal =
  | StatementRefusal
  | "file_lost"
  | "import_failed"
  | "other_account"
  | "batch_total_mismatch"
  | "stopped"
  | "unavailable";
