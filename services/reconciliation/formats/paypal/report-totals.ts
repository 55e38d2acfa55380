/** Compares the sums of a report and of its sections with the sums that their footers state. */
import { currencyCode } from "../amounts.ts";
import { FieldProblem, quoted } from "../csv/field-problem.ts";
import type { StatementRecord } from "../format.ts";
import { totalRecord } from "../records.ts";
import type { BodySums } from "./body-rows.ts";

/** All sums are positive, as in the report. */
interface FooterSums {
  readonly grossCredits: bigint;
  readonly grossDebits: bigint;
  readonly feeCredits: bigint;
  readonly feeDebits: bigint;
}

type Mutable = { -readonly [Sum in keyof FooterSums]: bigint };

const NONE: FooterSums = { grossCredits: 0n, grossDebits: 0n, feeCredits: 0n, feeDebits: 0n };
const NAMES: Readonly<Record<keyof FooterSums, string>> = {
  grossCredits: "gross credits",
  grossDebits: "gross debits",
  feeCredits: "fee credits",
  feeDebits: "fee debits",
};

export class ReportTotals {
  #section = new Map<string, Mutable>();
  readonly #report = new Map<string, Mutable>();
  #sections = 0;
  /** False where the first file of the report is missing: the first section may then have begun in the missing file. */
  #hasFirstFile = true;
  /** By currency: one entry for each currency at most. */
  readonly #reportFooters = new Map<string, FooterSums>();

  startAtFile(number: number): void {
    // A number that cannot be read (NaN) counts as the first file.
    this.#hasFirstFile = !(number > 1);
  }

  /** Whether all rows of the current section since its beginning were read. */
  get isWholeSection(): boolean {
    return this.#hasFirstFile || this.#sections > 1;
  }

  beginSection(): void {
    this.#section = new Map();
    this.#sections += 1;
  }

  add({ currency, grossMinor, feeCurrency, feeMinor }: BodySums): void {
    for (const sums of [this.#section, this.#report]) {
      const gross = sumsOf(sums, currency);
      const fees = sumsOf(sums, feeCurrency);
      if (grossMinor < 0n) gross.grossDebits -= grossMinor;
      else gross.grossCredits += grossMinor;
      if (feeMinor < 0n) fees.feeDebits -= feeMinor;
      else fees.feeCredits += feeMinor;
    }
  }

  /** Throws `FieldProblem`. */
  *footer(type: "SF" | "RF", text: string, stated: FooterSums): Generator<StatementRecord> {
    const currency = currencyCode(text);
    if (currency === undefined) throw new FieldProblem("currency", `${quoted(text)} is no ISO 4217 currency.`);
    if (type === "RF") {
      this.#reportFooters.set(currency, stated);
      return;
    }
    if (!this.isWholeSection) return;
    yield* compared(`section ${Math.max(1, this.#sections)}`, currency, stated, this.#section.get(currency) ?? NONE);
  }

  *end(): Generator<StatementRecord> {
    if (!this.#hasFirstFile) return;
    for (const [currency, stated] of this.#reportFooters)
      yield* compared("report", currency, stated, this.#report.get(currency) ?? NONE);
  }
}

function sumsOf(sums: Map<string, Mutable>, currency: string): Mutable {
  const known = sums.get(currency) ?? { ...NONE };
  sums.set(currency, known);
  return known;
}

function* compared(
  where: string,
  currency: string,
  stated: FooterSums,
  computed: FooterSums,
): Generator<StatementRecord> {
  for (const sum of Object.keys(NAMES) as (keyof FooterSums)[]) {
    const name = `${NAMES[sum]} of ${where}`;
    yield totalRecord({ name, currency, statedMinor: stated[sum], computedMinor: computed[sum] });
  }
}
