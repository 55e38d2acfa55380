/**
 * Adyen's settlement details report: the entries of payout batches. Each batch adds up to zero, together with its payout or
 * with the balance that the next batch continues.
 */
import { currencyCode } from "./amounts.ts";
import { RowCheck, SumsByKey } from "./control-sums.ts";
import { dateFormat, readDate, zonedInstant } from "./csv/declared-dates.ts";
import type { BoundHeader } from "./csv/dictionary.ts";
import { decimalOf, FieldProblem, quoted, recordOfRow } from "./csv/field-problem.ts";
import type { CsvRow } from "./csv/read-csv.ts";
import { type CsvReport, headerOf, readReport } from "./csv/report.ts";
import { ADYEN_COLUMNS, type AdyenField } from "./dictionaries/adyen-columns.ts";
import { ADYEN_TYPES } from "./dictionaries/adyen-types.ts";
import { NOT_MONEY_REASON, type ParseOptions, type StatementFormat, type StatementRecord } from "./format.ts";
import { headerRecord, lineRecord, totalRecord } from "./records.ts";

export const adyenSettlementDetails: StatementFormat = {
  name: "adyen_settlement_details",
  version: ADYEN_COLUMNS.version,
  title: "Adyen settlement details report",
  detect: (head) => headerOf(head, ADYEN_COLUMNS) !== undefined,
  parse: (text, options) => readReport(text, ADYEN_COLUMNS, (header) => new SettlementDetails(header, options)),
};

const DATE_FORMATS = ["YYYY-MM-DD HH:mm:ss", "YYYY-MM-DDTHH:mm:ss", "YYYY-MM-DDTHH:mm:ssZ", "YYYY-MM-DD"].flatMap(
  (format) => dateFormat(format) ?? [],
);
const FEE_PARTS = ["commission", "markup", "schemeFees", "interchange"] as const;
const DETAILS = [
  "companyAccount",
  "paymentMethod",
  "paymentMethodVariant",
  "exchangeRate",
  ...FEE_PARTS,
  "modificationMerchantReference",
] as const;
/** In the details where the batch is paid in another currency than the payment, so that they are in no other field. */
const SETTLED_DETAILS = ["netCurrency", "netDebit", "netCredit", "paymentFees"] as const;
/** A number in the notation of a spreadsheet: only its first digits are left. */
const DAMAGED_ID = /^\d(?:[.,]\d+)?E\+\d+$/i;

class SettlementDetails implements CsvReport {
  readonly #header: BoundHeader<AdyenField>;
  readonly #options: ParseOptions;
  readonly #batches = new SumsByKey<"account" | "batch" | "currency">();
  readonly #rows = new RowCheck();

  constructor(header: BoundHeader<AdyenField>, options: ParseOptions) {
    this.#header = header;
    this.#options = options;
  }

  *row(row: CsvRow): Generator<StatementRecord> {
    const beside: StatementRecord[] = [];
    const record = recordOfRow(row, () => {
      const sums = this.#sumsOf(row);
      const line = this.#line(row, sums);
      if (line.type === "line") beside.push(...this.#addToBatch(row, sums), ...this.#check(row, sums));
      return line;
    });
    yield* beside;
    yield record;
  }

  *end(): Generator<StatementRecord> {
    for (const [{ account, batch, currency }, minor] of this.#batches.entries())
      yield totalRecord({ name: `batch ${batch} of ${account}`, currency, statedMinor: 0n, computedMinor: minor });
  }

  *#addToBatch(row: CsvRow, { netCurrency, netMinor }: EntrySums): Generator<StatementRecord> {
    if (netCurrency === undefined || netMinor === undefined) return;
    const account = this.#value(row, "merchantAccount");
    const batch = this.#value(row, "batchNumber");
    if (!this.#batches.add({ account, batch, currency: netCurrency }, netMinor)) return;
    const none = { fromDate: undefined, toDate: undefined };
    yield headerRecord({ account, currency: netCurrency, ...none });
  }

  *#check({ position }: CsvRow, sums: EntrySums): Generator<StatementRecord> {
    const { currency, grossMinor, feeMinor = 0n, netMinor, isConverted } = sums;
    if (currency === undefined || grossMinor === undefined || netMinor === undefined || isConverted) return;
    yield* this.#rows.check({ position, currency, grossMinor, feeMinor, netMinor });
  }

  #line(row: CsvRow, sums: EntrySums): StatementRecord {
    const type = this.#value(row, "type");
    if (type === "") throw this.#problem("type", "The row has no type.");
    const kind = ADYEN_TYPES[type.toLowerCase()] ?? "adjustment";
    const at = this.#createdAt(row);
    return lineRecord({
      position: row.position,
      kind,
      providerType: type,
      ...this.#amountsOf(sums),
      tipMinor: this.#tipOf(row, sums),
      bookedOn: at.date,
      occurredAt: zonedInstant(at, this.#value(row, "timeZone"), this.#options.timeZone),
      ...this.#referencesOf(row),
      payoutReference: this.#value(row, "batchNumber"),
      terminal: this.#value(row, "terminal") || this.#value(row, "store"),
      account: this.#value(row, "merchantAccount"),
      details: [
        ...this.#header.details(row, sums.isConverted ? [...DETAILS, ...SETTLED_DETAILS] : DETAILS),
        ...(kind === "not_money" ? [[NOT_MONEY_REASON, type] as const] : []),
      ],
    });
  }

  /**
   * An entry of a payment has references of the provider. An entry of the account (a fee, a payout, a correction) has free text
   * in their place, which identifies nothing.
   */
  #referencesOf(row: CsvRow) {
    const pspReference = this.#idOf(row, "pspReference");
    const merchantReference = this.#value(row, "merchantReference");
    if (pspReference === "") {
      const texts = (["modificationReference", "modificationMerchantReference"] as const).map((field) =>
        this.#value(row, field),
      );
      return { merchantReference, text: [...new Set(texts)].filter((text) => text !== "").join(" · ") };
    }
    const providerReference = this.#idOf(row, "modificationReference") || pspReference;
    return { providerReference, paymentReference: pspReference, merchantReference };
  }

  /**
   * The gross where there is one, in the payment's currency; fee and net beside it when they are in that currency too. An entry
   * without a gross is its net.
   */
  #amountsOf({ currency, grossMinor, feeMinor, netCurrency, netMinor, isConverted }: EntrySums) {
    if (grossMinor !== undefined && currency !== undefined)
      return isConverted
        ? { amountMinor: grossMinor, currency }
        : { amountMinor: grossMinor, currency, feeMinor, netMinor };
    if (netMinor === undefined || netCurrency === undefined) throw this.#problem("netCredit", "The row has no amount.");
    return { amountMinor: netMinor, currency: netCurrency, netMinor };
  }

  /** The amount with the sign of the gross, whichever sign the report writes. */
  #tipOf(row: CsvRow, { currency, grossMinor = 0n }: EntrySums): bigint | undefined {
    const tip = this.#amountOf(row, "tip", currency) ?? 0n;
    if (tip === 0n) return undefined;
    return tip < 0n === grossMinor < 0n ? tip : -tip;
  }

  #sumsOf(row: CsvRow): EntrySums {
    const currency = this.#currencyOf(row, "grossCurrency");
    const netCurrency = this.#currencyOf(row, "netCurrency");
    const grossMinor = this.#difference(row, ["grossCredit", "grossDebit"], currency);
    const netMinor = this.#difference(row, ["netCredit", "netDebit"], netCurrency);
    const isConverted = grossMinor !== undefined && netCurrency !== undefined && currency !== netCurrency;
    return { currency, grossMinor, feeMinor: this.#feeOf(row, netCurrency), netCurrency, netMinor, isConverted };
  }

  #feeOf(row: CsvRow, currency: string | undefined): bigint | undefined {
    const parts = FEE_PARTS.map((field) => this.#amountOf(row, field, currency)).filter((part) => part !== undefined);
    if (parts.length > 0) return -parts.reduce((sum, part) => sum + part, 0n);
    const whole = this.#amountOf(row, "paymentFees", currency);
    return whole === undefined ? undefined : -whole;
  }

  #difference(row: CsvRow, [credit, debit]: readonly [AdyenField, AdyenField], currency: string | undefined) {
    const plus = this.#amountOf(row, credit, currency);
    const minus = this.#amountOf(row, debit, currency);
    return plus === undefined && minus === undefined ? undefined : (plus ?? 0n) - (minus ?? 0n);
  }

  #amountOf(row: CsvRow, field: AdyenField, currency: string | undefined): bigint | undefined {
    const text = this.#value(row, field);
    if (text === "") return undefined;
    if (currency === undefined) throw this.#problem(field, "The row has an amount without its currency.");
    return decimalOf(this.#header.nameOf(field), text, currency);
  }

  #currencyOf(row: CsvRow, field: "grossCurrency" | "netCurrency"): string | undefined {
    const text = this.#value(row, field);
    const currency = currencyCode(text);
    if (text !== "" && currency === undefined) throw this.#problem(field, `${quoted(text)} is no ISO 4217 currency.`);
    return currency;
  }

  #createdAt(row: CsvRow) {
    const text = this.#value(row, "creationDate");
    const read = readDate(text, DATE_FORMATS);
    if (read === undefined) throw this.#problem("creationDate", `${quoted(text)} is no date that the report has.`);
    return read;
  }

  #idOf(row: CsvRow, field: "pspReference" | "modificationReference"): string {
    const text = this.#value(row, field);
    if (!DAMAGED_ID.test(text)) return text;
    const reason = `${quoted(text)} is an id that a spreadsheet has changed; import the file as the provider made it.`;
    throw this.#problem(field, reason);
  }

  #value(row: CsvRow, field: AdyenField): string {
    return this.#header.value(row, field);
  }

  #problem(field: AdyenField, reason: string): FieldProblem {
    return new FieldProblem(this.#header.nameOf(field), reason);
  }
}

interface EntrySums {
  /** The currency of the gross. */
  readonly currency: string | undefined;
  readonly grossMinor: bigint | undefined;
  /** As it changes the balance, in the currency of the net. */
  readonly feeMinor: bigint | undefined;
  readonly netCurrency: string | undefined;
  readonly netMinor: bigint | undefined;
  /** Gross and net are in two currencies. */
  readonly isConverted: boolean;
}
