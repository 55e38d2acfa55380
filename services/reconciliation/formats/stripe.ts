/**
 * Stripe's itemised reports: payout reconciliation, and balance changes from activity. Amounts are in major units; fees are
 * costs, so that gross less fee is net. A manual or instant payout names no transactions.
 */
import { currencyCode } from "./amounts.ts";
import { RowCheck, SumsByKey } from "./control-sums.ts";
import { AmountNotation } from "./csv/amount-notation.ts";
import { dateFormat, instantOfDate, type ReadDate, readDate } from "./csv/declared-dates.ts";
import type { BoundHeader, HeaderDictionary } from "./csv/dictionary.ts";
import { decimalOf, FieldProblem, quoted, recordOfRow } from "./csv/field-problem.ts";
import type { CsvRow } from "./csv/read-csv.ts";
import { type CsvReport, headerOf, readReport } from "./csv/report.ts";
import { STRIPE_CATEGORIES } from "./dictionaries/stripe-categories.ts";
import {
  STRIPE_ACTIVITY_COLUMNS,
  STRIPE_PAYOUT_COLUMNS,
  STRIPE_PERSONAL,
  type StripeField,
} from "./dictionaries/stripe-columns.ts";
import {
  type ParseOptions,
  type StatementFormat,
  type StatementLine,
  type StatementRecord,
  StatementRefusedError,
} from "./format.ts";
import { lineRecord, totalRecord } from "./records.ts";

export const stripePayoutReconciliation: StatementFormat = {
  name: "stripe_payout_reconciliation",
  version: STRIPE_PAYOUT_COLUMNS.version,
  title: "Stripe payout reconciliation, itemised",
  referenceScope: "ever",
  detect: (head) => headerOf(head, STRIPE_PAYOUT_COLUMNS) !== undefined,
  parse: (text, options) => parseStripe(text, STRIPE_PAYOUT_COLUMNS, options),
};

export const stripeActivity: StatementFormat = {
  name: "stripe_activity",
  version: STRIPE_ACTIVITY_COLUMNS.version,
  title: "Stripe balance changes from activity, itemised",
  referenceScope: "ever",
  // With the column of payouts it can be either report.
  detect: (head) => {
    const header = headerOf(head, STRIPE_ACTIVITY_COLUMNS);
    return header !== undefined && (header.entry.name !== "itemised" || !header.has("payout"));
  },
  parse: (text, options) => parseStripe(text, STRIPE_ACTIVITY_COLUMNS, options),
};

function parseStripe(
  text: AsyncIterable<string>,
  dictionary: HeaderDictionary<StripeField>,
  options: ParseOptions,
): AsyncIterable<StatementRecord> {
  const hasWholePayouts = dictionary === STRIPE_PAYOUT_COLUMNS;
  return readReport(text, dictionary, (header) => new BalanceTransactions(header, options, hasWholePayouts));
}

const DATE_FORMATS = [
  "YYYY-MM-DD",
  "YYYY-MM-DD HH:mm:ss",
  "YYYY-MM-DD HH:mm",
  "YYYY-MM-DDTHH:mm:ss",
  "YYYY-MM-DDTHH:mm:ssZ",
].flatMap((format) => dateFormat(format) ?? []);
const DATE_FIELDS = ["created", "createdUtc", "availableOn", "availableOnUtc", "payoutEffectiveAt"] as const;
const REFERENCES = ["orderReference", "merchantReference", "intentReference", "plainReference"] as const;
/** The id of a payout object. */
const PAYOUT_ID = /^po_/;

class BalanceTransactions implements CsvReport {
  readonly #header: BoundHeader<StripeField>;
  readonly #options: ParseOptions;
  /** Whether the report has all transactions of each payout that it names. */
  readonly #hasWholePayouts: boolean;
  readonly #transactions = new SumsByKey<"payout" | "currency">();
  readonly #payouts = new SumsByKey<"payout" | "currency">();
  readonly #rows = new RowCheck();
  /** The exporter chooses a decimal point or a decimal comma; thousands are not grouped. */
  readonly #amounts = new AmountNotation({ grouped: false });

  constructor(header: BoundHeader<StripeField>, options: ParseOptions, hasWholePayouts: boolean) {
    this.#header = header;
    this.#options = options;
    this.#hasWholePayouts = hasWholePayouts;
    if (DATE_FIELDS.some((field) => header.has(field))) return;
    const sentence = `The report has no column with a date; export it with "created_utc".`;
    throw new StatementRefusedError("unknown_header", sentence);
  }

  *row(row: CsvRow): Generator<StatementRecord> {
    const record = recordOfRow(row, () => this.#line(row));
    if (record.type === "line") yield* this.#add(record.line);
    yield record;
  }

  /** A payout is the negative sum of its transactions. A payout without transactions in the file is not compared. */
  *end(): Generator<StatementRecord> {
    for (const [parts, minor] of this.#payouts.entries()) {
      const computedMinor = this.#transactions.get(parts);
      if (computedMinor === undefined) continue;
      const { payout, currency } = parts;
      yield totalRecord({ name: `transactions of payout ${payout}`, currency, statedMinor: -minor, computedMinor });
    }
  }

  *#add(line: StatementLine): Generator<StatementRecord> {
    const { position, currency, amountMinor: grossMinor, feeMinor = 0n, netMinor = 0n, payoutReference: payout } = line;
    yield* this.#rows.check({ position, currency, grossMinor, feeMinor, netMinor });
    if (payout === "" || !this.#hasWholePayouts) return;
    const isPayout = line.kind === "payout" || line.kind === "payout_reversal";
    (isPayout ? this.#payouts : this.#transactions).add({ payout, currency }, netMinor);
  }

  #line(row: CsvRow): StatementRecord {
    const value = (field: StripeField): string => this.#header.value(row, field);
    const currency = this.#currencyOf(row);
    const amount = (field: StripeField): bigint =>
      decimalOf(this.#header.nameOf(field), value(field), currency, this.#amounts.of(value(field)));
    const category = value("category");
    if (category === "") throw this.#problem("category", "The row has no category.");
    const kind = STRIPE_CATEGORIES[category.toLowerCase()] ?? "adjustment";
    const isPayout = kind === "payout" || kind === "payout_reversal";
    return lineRecord({
      position: row.position,
      kind,
      providerType: category,
      amountMinor: amount("gross"),
      currency,
      feeMinor: value("fee") === "" ? undefined : -amount("fee"),
      netMinor: amount("net"),
      ...this.#datesOf(row),
      providerReference: value("balanceTransaction"),
      paymentReference: isPayout ? "" : value("paymentIntent") || value("charge"),
      merchantReference: REFERENCES.map(value).find((reference) => reference !== ""),
      payoutReference: value("payout") || (isPayout && PAYOUT_ID.test(value("source")) ? value("source") : ""),
      text: value("description"),
      details: this.#detailsOf(row),
    });
  }

  *#detailsOf(row: CsvRow): Generator<readonly [name: string, value: string]> {
    const bound = ["source", "charge", "payoutEffectiveAt", "payoutEffectiveAtUtc", ...REFERENCES] as const;
    for (const [name, value] of this.#header.details(row, bound)) if (!STRIPE_PERSONAL.test(name)) yield [name, value];
  }

  /** `created` is in the exporter's time zone, which the report does not name; `created_utc` is an instant. */
  #datesOf(row: CsvRow) {
    const read = (field: StripeField): ReadDate | undefined => this.#dateOf(row, field);
    const created = read("created");
    const createdUtc = read("createdUtc");
    const booked = created ?? createdUtc ?? read("availableOn") ?? read("availableOnUtc") ?? read("payoutEffectiveAt");
    if (booked === undefined) throw this.#problem("created", "The row has no date.");
    const local = created === undefined ? undefined : instantOfDate(created, this.#options.timeZone);
    return {
      bookedOn: booked.date,
      valueOn: (read("availableOn") ?? read("availableOnUtc"))?.date,
      occurredAt:
        createdUtc?.time === undefined ? local : `${createdUtc.date}T${createdUtc.time}${createdUtc.offset ?? "Z"}`,
    };
  }

  #dateOf(row: CsvRow, field: StripeField): ReadDate | undefined {
    const text = this.#header.value(row, field);
    if (text === "") return undefined;
    const read = readDate(text, DATE_FORMATS);
    if (read === undefined) throw this.#problem(field, `${quoted(text)} is no date that the report has.`);
    return read;
  }

  #currencyOf(row: CsvRow): string {
    const text = this.#header.value(row, "currency");
    const currency = currencyCode(text);
    if (currency === undefined) throw this.#problem("currency", `${quoted(text)} is no ISO 4217 currency.`);
    return currency;
  }

  #problem(field: StripeField, reason: string): FieldProblem {
    return new FieldProblem(this.#header.nameOf(field), reason);
  }
}
