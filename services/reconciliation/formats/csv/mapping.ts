/** How the columns of a file without a dictionary become the fields of a line, as the operator stored it. */

/** The fields of a line that a column can be mapped to. */
export const MAPPED_FIELDS = [
  "providerType",
  "amountMinor",
  "currency",
  "feeMinor",
  "netMinor",
  "tipMinor",
  "bookedOn",
  "valueOn",
  "occurredAt",
  "providerReference",
  "paymentReference",
  "merchantReference",
  "payoutReference",
  "terminal",
  "account",
  "text",
] as const;
export type MappedField = (typeof MAPPED_FIELDS)[number];

export interface CsvMapping {
  /** From the column's name, as in the header, to the line's field. */
  readonly columns: Readonly<Record<string, MappedField>>;
  readonly decimalSeparator: "." | ",";
  /** Of the date columns, for example `DD.MM.YYYY`. */
  readonly dateFormat: string;
  /** `as_written`: money in is positive in the file; `inverted`: money in is negative. */
  readonly signRule: "as_written" | "inverted";
}
