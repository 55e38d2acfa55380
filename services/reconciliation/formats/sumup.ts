/**
 * SumUp's transaction report as CSV, in German, French, Italian and English. A card sale has two rows with one id: the sale,
 * and its share of a payout, which repeats the sale's total and fee. Cash, cancelled and failed sales are in it too.
 */
import { currencyCode } from "./amounts.ts";
import { AmountNotation } from "./csv/amount-notation.ts";
import { type DateFormat, dateFormat, instantOfDate, type ReadDate, readDate } from "./csv/declared-dates.ts";
import type { BoundHeader } from "./csv/dictionary.ts";
import { decimalOf, FieldProblem, quoted, recordOfRow } from "./csv/field-problem.ts";
import type { CsvRow } from "./csv/read-csv.ts";
import { type CsvReport, headerOf, readReport } from "./csv/report.ts";
import { SUMUP_COLUMNS, type SumupField } from "./dictionaries/sumup-columns.ts";
import {
  SUMUP_CASH,
  SUMUP_OUTCOMES,
  SUMUP_TYPES,
  type SumupOutcome,
  type SumupType,
} from "./dictionaries/sumup-words.ts";
import {
  type LineKind,
  NOT_MONEY_REASON,
  type ParseOptions,
  type StatementFormat,
  type StatementRecord,
  StatementRefusedError,
} from "./format.ts";
import { lineRecord } from "./records.ts";

export const sumup: StatementFormat = {
  name: "sumup",
  version: SUMUP_COLUMNS.version,
  title: "SumUp transaction report",
  detect: (head) => headerOf(head, SUMUP_COLUMNS) !== undefined,
  parse: (text, options) => readReport(text, SUMUP_COLUMNS, (header) => new SumupReport(header, options)),
};

/** In dates with points the day is first. Dates with a slash depend on the language, and are not read in English. */
const DATE_FORMATS = [
  ...formatsOf(
    ["YYYY-MM-DD", "DD.MM.YYYY", "D.M.YYYY", "D MMM YYYY", "D. MMM YYYY"],
    ["", " HH:mm:ss", " HH:mm", ", HH:mm:ss", ", HH:mm", "THH:mm:ss", "THH:mm:ssZ", " HH:mm:ssZ"],
  ),
  ...formatsOf(
    ["MMM D, YYYY", "D MMM YYYY"],
    ["", ", HH:mm:ss", ", HH:mm", " HH:mm", ", h:mm:ss A", ", h:mm A", " h:mm A"],
  ),
];
const SLASH_FORMATS = formatsOf(["DD/MM/YYYY"], ["", " HH:mm:ss", " HH:mm", ", HH:mm:ss", ", HH:mm"]);

class SumupReport implements CsvReport {
  readonly #header: BoundHeader<SumupField>;
  readonly #options: ParseOptions;
  readonly #amounts = new AmountNotation({ grouped: true });
  readonly #dates: readonly DateFormat[];

  constructor(header: BoundHeader<SumupField>, options: ParseOptions) {
    this.#header = header;
    this.#options = options;
    this.#dates = header.entry.name.startsWith("English") ? DATE_FORMATS : [...DATE_FORMATS, ...SLASH_FORMATS];
    if (header.has("currency") || options.currency !== undefined) return;
    const sentence = "The report names no currency; declare the currency of its account.";
    throw new StatementRefusedError("mapping_refused", sentence);
  }

  row(row: CsvRow): readonly StatementRecord[] {
    return [recordOfRow(row, () => this.#line(row))];
  }

  end(): readonly StatementRecord[] {
    return [];
  }

  #line(row: CsvRow): StatementRecord {
    const value = (field: SumupField): string => this.#header.value(row, field);
    const type = wordOf<SumupType>(SUMUP_TYPES, value("type"), this.#header.nameOf("type"));
    const outcome = this.#outcomeOf(type, value("status"));
    const kind = this.#kindOf(type, outcome, value("method"));
    const currency = this.#currencyOf(row);
    const at = this.#dateOf(row, "date");
    const id = value("id");
    if (id === "") throw new FieldProblem(this.#header.nameOf("id"), "The row has no transaction id.");
    return lineRecord({
      position: row.position,
      kind,
      providerType: type,
      currency,
      ...this.#amountsOf(row, { type, outcome, currency }),
      bookedOn: at.date,
      valueOn: value("payoutDate") === "" ? undefined : this.#dateOf(row, "payoutDate").date,
      occurredAt: instantOfDate(at, this.#options.timeZone),
      providerReference: id,
      // The rows of one payment have one id.
      paymentReference: type === "Sale" ? "" : id,
      merchantReference: value("reference"),
      payoutReference: value("payoutId"),
      text: value("description"),
      details: [
        ...this.#header.details(row, ["date", "type", "status", "method", "total", "fee"]),
        ...(kind === "not_money" ? [[NOT_MONEY_REASON, value("status")] as const] : []),
      ],
    });
  }

  /** A refund that was made has no status in some languages. */
  #outcomeOf(type: SumupType, status: string): SumupOutcome {
    if (type === "Refund" && status === "") return "done";
    return wordOf<SumupOutcome>(SUMUP_OUTCOMES, status, this.#header.nameOf("status"));
  }

  #kindOf(type: SumupType, outcome: SumupOutcome, method: string): LineKind {
    if (type === "Payout" && (outcome === "planned" || outcome === "pending")) return "planned_payout";
    const isMoney = outcome === "done" || (outcome === "refunded" && type !== "Payout");
    if (!isMoney) return "not_money";
    if (type === "Payout") return "payout";
    if (SUMUP_CASH.has(wordKey(method))) return "cash_payment";
    return type === "Sale" ? "payment" : type === "Refund" ? "refund" : "chargeback";
  }

  /** A payout is negative, as in the statements of other providers; the fee in its row belongs to the sale. */
  #amountsOf(row: CsvRow, { type, outcome, currency }: RowSense) {
    const amount = (field: SumupField): bigint | undefined => this.#amountOf(row, field, currency);
    const total = amount("total");
    const fee = amount("fee");
    const tip = amount("tip");
    if (type === "Payout") {
      // The share of the payout is the total less the fee, where a generation has no column for it.
      const paid = amount("payout") ?? (total === undefined ? undefined : total - (fee ?? 0n));
      if (paid === undefined) throw this.#noAmount("payout");
      return { amountMinor: -paid, feeMinor: undefined, netMinor: -paid, tipMinor: undefined };
    }
    if (total === undefined) throw this.#noAmount("total");
    if (type === "Sale" && total < 0n)
      throw new FieldProblem(this.#header.nameOf("total"), "A sale has a negative amount.");
    const sign = type === "Sale" ? 1n : -1n;
    const amountMinor = sign * (total < 0n ? -total : total);
    const isFinal = outcome === "done" || outcome === "refunded";
    const feeMinor = fee === undefined || !isFinal ? undefined : -fee;
    const tipMinor = tip === undefined ? undefined : sign * (tip < 0n ? -tip : tip);
    return { amountMinor, feeMinor, netMinor: feeMinor === undefined ? undefined : amountMinor + feeMinor, tipMinor };
  }

  #noAmount(field: SumupField): FieldProblem {
    return new FieldProblem(this.#header.nameOf(field), "The row has no amount.");
  }

  #amountOf(row: CsvRow, field: SumupField, currency: string): bigint | undefined {
    const text = this.#header.value(row, field);
    if (text === "") return undefined;
    const column = this.#header.nameOf(field);
    const notation = this.#amounts.of(text);
    if (notation === undefined)
      throw new FieldProblem(
        column,
        `${quoted(text)} can be read in two ways, and no amount before it shows which one is meant.`,
      );
    return decimalOf(column, text, currency, notation);
  }

  #currencyOf(row: CsvRow): string {
    const text = this.#header.value(row, "currency");
    const named = text === "" ? this.#options.currency : text;
    const currency = named === undefined ? undefined : currencyCode(named);
    if (currency === undefined)
      throw new FieldProblem(this.#header.nameOf("currency"), `${quoted(text)} is no ISO 4217 currency.`);
    return currency;
  }

  #dateOf(row: CsvRow, field: SumupField): ReadDate {
    const text = this.#header.value(row, field).normalize("NFC").replaceAll(/\s+/gu, " ");
    const read = readDate(text, this.#dates);
    if (read !== undefined) return read;
    if (readDate(text, SLASH_FORMATS) !== undefined) {
      const sentence = `The English report has dates such as ${quoted(text)}, where the day and the month cannot be told apart; store a mapping that declares the format.`;
      throw new StatementRefusedError("ambiguous_dates", sentence);
    }
    throw new FieldProblem(this.#header.nameOf(field), `${quoted(text)} is no date that the report has.`);
  }
}

interface RowSense {
  readonly type: SumupType;
  readonly outcome: SumupOutcome;
  readonly currency: string;
}

/** Exporters differ in capital letters and in how an accent is composed. */
const wordKey = (word: string): string => word.normalize("NFC").toLowerCase();

/** The group that a word is in. */
function wordOf<Group extends string>(
  groups: Readonly<Record<Group, readonly string[]>>,
  word: string,
  column: string,
): Group {
  const key = wordKey(word);
  const found = (Object.keys(groups) as Group[]).find((group) => groups[group].includes(key));
  if (found === undefined) throw new FieldProblem(column, `${quoted(word)} is no word that is known here.`);
  return found;
}

function formatsOf(dates: readonly string[], times: readonly string[]): readonly DateFormat[] {
  return dates.flatMap((date) => times.flatMap((time) => dateFormat(date + time) ?? []));
}
