/** The body rows (SB) of a section, read by the section's column headers. */
import { type AmountReading, currencyCode, readDecimal } from "../amounts.ts";
import { dateFormat, instantOfDate, type ReadDate, readDate } from "../csv/declared-dates.ts";
import type { BoundHeader } from "../csv/dictionary.ts";
import { FieldProblem, minorOf, quoted } from "../csv/field-problem.ts";
import type { CsvRow } from "../csv/read-csv.ts";
import { PAYPAL_PERSONAL, type PaypalField } from "../dictionaries/paypal-columns.ts";
import { type PaypalEvent, paypalEvent } from "../dictionaries/paypal-events.ts";
import { type LineKind, NOT_MONEY_REASON, type StatementRecord } from "../format.ts";
import { lineRecord } from "../records.ts";

/** The amounts that a row adds to the totals of its section. */
export interface BodySums {
  readonly currency: string;
  readonly grossMinor: bigint;
  readonly feeCurrency: string;
  readonly feeMinor: bigint;
}

/** The statuses of a transaction detail report whose transactions have moved no money. */
const NO_MONEY_STATUS: Readonly<Record<string, string>> = { D: "denied", P: "pending" };
const NO_SUMS: Omit<BodySums, "currency" | "feeCurrency"> = { grossMinor: 0n, feeMinor: 0n };

export class BodyRows {
  readonly #header: BoundHeader<PaypalField>;

  constructor(header: BoundHeader<PaypalField>) {
    this.#header = header;
  }

  /** Throws `FieldProblem`. */
  read(row: CsvRow, account: string): { readonly line: StatementRecord; readonly sums: BodySums } {
    this.#checkWidth(row);
    const value = (field: PaypalField): string => this.#header.value(row, field);
    const code = value("eventCode").toUpperCase();
    const event = paypalEvent(code);
    const status = NO_MONEY_STATUS[value("status").toUpperCase()];
    const sums = this.#sumsOf(row);
    const kind = status === undefined ? this.#kindOf(row, event) : "not_money";
    const line = lineRecord({
      position: row.position,
      kind,
      providerType: code,
      amountMinor: sums.grossMinor,
      currency: sums.currency,
      ...feeAndNet(sums, value("fee") !== ""),
      ...this.#datesOf(row),
      ...this.#referencesOf(row, kind),
      terminal: value("terminalId") || value("storeId"),
      account,
      text: [value("subject"), value("note")].filter((text) => text !== "").join(" · "),
      details: this.#detailsOf(row, kind === "not_money" ? (status ?? event.reason) : undefined, sums),
    });
    // A denied or pending transaction and an authorization are not in the totals; a hold is, because it moves the balance.
    const isCounted = status === undefined && event.reason !== "authorization" && event.reason !== "display only";
    return { line, sums: isCounted ? sums : { ...sums, ...NO_SUMS } };
  }

  #checkWidth({ fields }: CsvRow): void {
    const columns = this.#header.columns.length;
    if (fields.length === columns) return;
    const reason = `The row has ${fields.length} fields after its type, and the header has ${columns} columns.`;
    throw new FieldProblem(this.#header.columns[fields.length] ?? "", reason);
  }

  #kindOf(row: CsvRow, { credit, debit }: PaypalEvent): LineKind {
    return this.#header.value(row, "sign").toUpperCase() === "CR" ? credit : debit;
  }

  #sumsOf(row: CsvRow): BodySums {
    const currency = this.#currencyOf(row, "currency");
    const grossMinor = this.#signedOf(row, "gross", "sign", currency);
    if (this.#header.value(row, "fee") === "") return { currency, grossMinor, feeCurrency: currency, feeMinor: 0n };
    const isFree = /^0+$/.test(this.#header.value(row, "fee"));
    if (isFree) return { currency, grossMinor, feeCurrency: currency, feeMinor: 0n };
    const feeCurrency = this.#currencyOf(row, "feeCurrency");
    return { currency, grossMinor, feeCurrency, feeMinor: this.#signedOf(row, "fee", "feeSign", feeCurrency) };
  }

  #signedOf(row: CsvRow, field: "gross" | "fee", signField: "sign" | "feeSign", currency: string): bigint {
    const minor = minorOf(this.#header.nameOf(field), readHundredths(this.#header.value(row, field), currency));
    const sign = this.#header.value(row, signField).toUpperCase();
    if (sign === "CR") return minor;
    if (sign === "DR") return -minor;
    throw this.#problem(signField, `${quoted(sign)} is neither CR nor DR.`);
  }

  #currencyOf(row: CsvRow, field: PaypalField): string {
    const text = this.#header.value(row, field);
    const currency = currencyCode(text);
    if (currency === undefined) throw this.#problem(field, `${quoted(text)} is no ISO 4217 currency.`);
    return currency;
  }

  /** The booking day is that of the completion, or of the initiation while a transaction is pending. */
  #datesOf(row: CsvRow) {
    const initiated = this.#dateOf(row, "initiatedAt");
    const completed = this.#dateOf(row, "completedAt");
    const booked = completed ?? initiated;
    if (booked === undefined) throw this.#problem("completedAt", "The row has no date.");
    return { bookedOn: booked.date, occurredAt: instantOfDate(initiated ?? booked, undefined) };
  }

  #dateOf(row: CsvRow, field: PaypalField): ReadDate | undefined {
    const text = this.#header.value(row, field);
    if (text === "") return undefined;
    const read = paypalDate(text);
    if (read === undefined) throw this.#problem(field, `${quoted(text)} is no date that the report has.`);
    return read;
  }

  /** The reference is a transaction's unless its type says otherwise: an order, a subscription, an agreement. */
  #referencesOf(row: CsvRow, kind: LineKind) {
    const value = (field: PaypalField): string => this.#header.value(row, field);
    const isTransaction = value("referenceIdType") === "TXN" || value("referenceIdType") === "";
    return {
      providerReference: value("transactionId"),
      paymentReference: isTransaction ? value("referenceId") : "",
      merchantReference: value("invoiceId") || value("customField"),
      payoutReference: kind === "payout" || kind === "payout_reversal" ? value("bankReferenceId") : "",
    };
  }

  *#detailsOf(
    row: CsvRow,
    reason: string | undefined,
    { currency, feeCurrency, feeMinor }: BodySums,
  ): Generator<readonly [name: string, value: string]> {
    const also = ["status", "referenceId", "referenceIdType", "customField", "storeId", "bankReferenceId"] as const;
    for (const [name, value] of this.#header.details(row, also)) if (!PAYPAL_PERSONAL.test(name)) yield [name, value];
    // In minor units.
    if (feeCurrency !== currency) yield [this.#header.nameOf("fee"), `${feeMinor} ${feeCurrency}`];
    if (reason !== undefined) yield [NOT_MONEY_REASON, reason];
  }

  #problem(field: PaypalField, reason: string): FieldProblem {
    return new FieldProblem(this.#header.nameOf(field), reason);
  }
}

/** A fee in another currency is in the details only. */
function feeAndNet({ currency, grossMinor, feeCurrency, feeMinor }: BodySums, hasFee: boolean) {
  if (currency !== feeCurrency) return { feeMinor: undefined, netMinor: undefined };
  return { feeMinor: hasFee ? feeMinor : undefined, netMinor: grossMinor + feeMinor };
}

/**
 * Amounts count hundredths of every currency, so that 10000 is 100 dollars and 100 yen: whole numbers without a sign; the
 * direction is in another field.
 */
export function readHundredths(text: string, currency: string): AmountReading {
  if (!/^\d+$/.test(text))
    return { reason: `${JSON.stringify(text.slice(0, 40))} is not a whole number of hundredths.` };
  const digits = text.padStart(3, "0");
  return readDecimal(`${digits.slice(0, -2)}.${digits.slice(-2)}`, currency);
}

const DATE_FORMATS = ["YYYY/MM/DD HH:mm:ssZ", "YYYY/MM/DD HH:mm:ss"].flatMap((format) => dateFormat(format) ?? []);

/** `2026/01/06 00:00:30 -0800`. */
export function paypalDate(text: string): ReadDate | undefined {
  return readDate(text.replace(/ ([+-]\d\d):?(\d\d)$/, "$1:$2"), DATE_FORMATS);
}
