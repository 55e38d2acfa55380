/**
 * PayPal's activity download and monthly statement as CSV. The sign of the fee is not reliable: German files have it positive in
 * sales and in refunds, so the fee is the difference between gross and net. The two rows of a currency conversion refer to one
 * transaction.
 */
import { currencyCode, readDecimal } from "../amounts.ts";
import { AmountNotation } from "../csv/amount-notation.ts";
import { type ReadDate, zonedInstant } from "../csv/declared-dates.ts";
import type { BoundHeader } from "../csv/dictionary.ts";
import { FieldProblem, minorOf, quoted, recordOfRow } from "../csv/field-problem.ts";
import type { CsvRow } from "../csv/read-csv.ts";
import { type CsvReport, headerOf, readReport } from "../csv/report.ts";
import {
  ACTIVITY_PERSONAL,
  type ActivityField,
  PAYPAL_ACTIVITY_COLUMNS,
} from "../dictionaries/paypal-activity-columns.ts";
import {
  ACTIVITY_DONE,
  ACTIVITY_IMPACT,
  ACTIVITY_INFORMATION,
  ACTIVITY_MEMO,
  ACTIVITY_PENDING,
  ACTIVITY_TYPES,
  ACTIVITY_UNDONE,
} from "../dictionaries/paypal-activity-words.ts";
import { paypalEvent } from "../dictionaries/paypal-events.ts";
import {
  type LineKind,
  NOT_MONEY_REASON,
  type ParseOptions,
  type StatementFormat,
  type StatementRecord,
  StatementRefusedError,
} from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { lineRecord } from "../records.ts";
import { DateOrder } from "./date-order.ts";

export const paypalActivity: StatementFormat = {
  name: "paypal_activity",
  version: PAYPAL_ACTIVITY_COLUMNS.version,
  title: "PayPal activity download",
  referenceScope: "ever",
  detect: (head) => headerOf(head, PAYPAL_ACTIVITY_COLUMNS) !== undefined,
  parse: (text, options) => readReport(text, PAYPAL_ACTIVITY_COLUMNS, (header) => new Activity(header, options)),
};

const DETAILS = ["name", "type", "status", "referenceId", "custom", "impact"] as const;

class Activity implements CsvReport {
  readonly #header: BoundHeader<ActivityField>;
  readonly #options: ParseOptions;
  readonly #amounts: AmountNotation;
  readonly #order = new DateOrder();
  /** The first rows, while their dates can be read in two ways. */
  #held: CsvRow[] = [];

  constructor(header: BoundHeader<ActivityField>, options: ParseOptions) {
    this.#header = header;
    this.#options = options;
    // A person's settings decide the separator, not the language: there are English files with a decimal comma.
    const usual = header.entry.name.startsWith("English") ? "." : ",";
    this.#amounts = new AmountNotation({ grouped: true, usual });
  }

  *row(row: CsvRow): Generator<StatementRecord> {
    this.#order.note(this.#header.value(row, "date"));
    if (this.#order.isUndecided) {
      if (this.#held.length >= FORMAT_LIMITS.heldRows) throw this.#ambiguous();
      this.#held.push(row);
      return;
    }
    yield* this.#release();
    yield this.#record(row);
  }

  *end(): Generator<StatementRecord> {
    if (this.#order.isUndecided && this.#order.isOrderSignificant) throw this.#ambiguous();
    yield* this.#release();
  }

  *#release(): Generator<StatementRecord> {
    const held = this.#held;
    this.#held = [];
    for (const row of held) yield this.#record(row);
  }

  #ambiguous(): StatementRefusedError {
    const [row] = this.#held;
    const date = row === undefined ? "" : this.#header.value(row, "date");
    const sentence = `The dates of the file, such as ${quoted(date)}, can be read with the day or with the month first; store a mapping that declares the format.`;
    return new StatementRefusedError("ambiguous_dates", sentence);
  }

  #record(row: CsvRow): StatementRecord {
    return recordOfRow(row, () => this.#line(row));
  }

  #line(row: CsvRow): StatementRecord {
    const value = (field: ActivityField): string => this.#header.value(row, field);
    const providerType = this.#typeOf(row);
    const sums = this.#sumsOf(row);
    const { kind, reason } = this.#kindOf(row, providerType, sums.amountMinor);
    const at = this.#dateOf(row);
    return lineRecord({
      position: row.position,
      kind,
      providerType,
      ...sums,
      bookedOn: at.date,
      occurredAt: zonedInstant(at, value("timeZone"), this.#options.timeZone),
      providerReference: value("transactionId"),
      paymentReference: value("referenceId"),
      merchantReference: value("invoice") || value("custom"),
      text: [value("subject"), value("note")].filter((text) => text !== "").join(" · "),
      details: this.#detailsOf(row, reason),
    });
  }

  /** The event code, from its column or by the word; else the word. */
  #typeOf(row: CsvRow): string {
    const code = this.#header.value(row, "eventCode").toUpperCase();
    const word = this.#header.value(row, "type");
    if (code === "" && word === "") throw this.#problem("type", "The row has no type.");
    return code || (ACTIVITY_TYPES[keyOf(word)] ?? word);
  }

  #kindOf(row: CsvRow, providerType: string, amountMinor: bigint): { kind: LineKind; reason: string | undefined } {
    const { credit, debit, reason } = paypalEvent(providerType);
    const kind = amountMinor < 0n ? debit : credit;
    const status = this.#header.value(row, "status");
    const impact = keyOf(this.#header.value(row, "impact"));
    // The word decides also where the row has a code: PayPal's list of codes has none for these rows.
    const word = keyOf(this.#header.value(row, "type"));
    if (ACTIVITY_INFORMATION.has(word)) return { kind: "not_money", reason: "information" };
    if (ACTIVITY_MEMO.has(impact)) return { kind: "not_money", reason: "memo" };
    if (hasMoved(keyOf(status), impact)) return { kind, reason };
    if (kind === "payout" && ACTIVITY_PENDING.has(keyOf(status))) return { kind: "planned_payout", reason: undefined };
    return { kind: "not_money", reason: status };
  }

  #sumsOf(row: CsvRow) {
    const text = this.#header.value(row, "currency");
    const currency = currencyCode(text);
    if (currency === undefined) throw this.#problem("currency", `${quoted(text)} is no ISO 4217 currency.`);
    const amountMinor = this.#amountOf(row, "gross", currency);
    if (this.#isBlank(row, "net") && this.#isBlank(row, "fee"))
      return { currency, amountMinor, feeMinor: undefined, netMinor: undefined, tipMinor: undefined };
    const netMinor = this.#amountOf(row, "net", currency);
    const tip = this.#header.value(row, "tip");
    const tipMinor = tip === "" ? undefined : this.#amountOf(row, "tip", currency);
    const feeMinor = netMinor - amountMinor;
    const stated = this.#isBlank(row, "fee") ? 0n : this.#amountOf(row, "fee", currency);
    if (stated !== feeMinor && stated !== -feeMinor)
      throw this.#problem("fee", "The fee is not what lies between gross and net.");
    return { currency, amountMinor, feeMinor, netMinor, tipMinor: tipMinor === 0n ? undefined : tipMinor };
  }

  /** Rows for information have no fee and no net, and older files have dots in their place. */
  #isBlank(row: CsvRow, field: "fee" | "net"): boolean {
    return /^(?:\.{3})?$/.test(this.#header.value(row, field));
  }

  #amountOf(row: CsvRow, field: ActivityField, currency: string): bigint {
    const text = this.#header.value(row, field);
    return minorOf(this.#header.nameOf(field), readDecimal(text, currency, this.#amounts.of(text)));
  }

  #dateOf(row: CsvRow): ReadDate {
    const text = `${this.#header.value(row, "date")} ${this.#header.value(row, "time")}`.trim();
    const read = this.#order.read(text);
    if (read === undefined) throw this.#problem("date", `${quoted(text)} is no date that the report has.`);
    return read;
  }

  *#detailsOf(row: CsvRow, reason: string | undefined): Generator<readonly [name: string, value: string]> {
    for (const [name, value] of this.#header.details(row, DETAILS))
      if (!ACTIVITY_PERSONAL.test(name)) yield [name, value];
    if (reason !== undefined) yield [NOT_MONEY_REASON, reason];
  }

  #problem(field: ActivityField, reason: string): FieldProblem {
    return new FieldProblem(this.#header.nameOf(field), reason);
  }
}

function hasMoved(status: string, impact: string): boolean {
  if (status === "" || ACTIVITY_DONE.has(status)) return true;
  return !ACTIVITY_PENDING.has(status) && !ACTIVITY_UNDONE.has(status) && ACTIVITY_IMPACT.has(impact);
}

/** Some exports number their types, and those of the United Kingdom write "authorisation". */
function keyOf(word: string): string {
  return word
    .normalize("NFC")
    .toLowerCase()
    .replaceAll("’", "'")
    .replaceAll("authoris", "authoriz")
    .replace(/\s+\d+$/, "");
}
