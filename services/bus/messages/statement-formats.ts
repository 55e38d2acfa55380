/** The closed lists about statement files that operations and parsers share. */

/** The kinds of statement lines. The sign of an amount is from the merchant's view: incoming funds are positive. */
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
   * A failed, cancelled, pending or informational row. The service stores it and never matches it. `NOT_MONEY_REASON`
   * in its details is the cause.
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

/** The separators of CSV fields. */
export const DELIMITERS = [",", ";", "\t", "|"] as const;

/** Why a parser refuses a whole file. */
export type StatementRefusal =
  /** The file is certainly not of the declared format. */
  | "not_this_format"
  /** No dictionary has this header: the file needs a mapping. */
  | "unknown_header"
  | "unsupported_version"
  /** The file is of the same family of formats, but it is not a statement: camt.052. */
  | "not_a_statement"
  | "doctype_refused"
  /** The XML is not well-formed. */
  | "not_well_formed"
  /** A line, a record or an element is longer than a parser holds in memory. */
  | "line_too_long"
  /** The file has NUL bytes, or bytes that are not text in the declared encoding. */
  | "not_text"
  | "truncated"
  /** The file has no text, or only white space. */
  | "empty_file"
  | "archive_refused"
  | "too_large"
  /** The dates can be read in two ways, and the mapping does not say which. */
  | "ambiguous_dates"
  /** The mapping does not fit the file. */
  | "mapping_refused";

/** Why a file is refused or held: the reasons of parsers, of imports and of mapping tests. */
export type FileRefusal =
  | StatementRefusal
  | "file_lost"
  | "import_failed"
  | "other_account"
  | "batch_total_mismatch"
  | "stopped"
  | "unavailable";
