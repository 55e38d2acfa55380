/** What the shape of a mapping (`csvMappingShape`) cannot express: formats of dates, patterns, and exclusions between fields. */
import type { z } from "zod";
import { currencyExponent } from "../../../../machines/currencies.ts";
import { type CsvMapping, csvMappingShape } from "../../../bus/messages/csv-mapping.ts";
import { areAmbiguous, dateFormat } from "./declared-dates.ts";
import { extractPattern } from "./extract-pattern.ts";

export type { CsvMapping } from "../../../bus/messages/csv-mapping.ts";

interface Problem {
  readonly path: readonly (string | number)[];
  readonly message: string;
}

export const csvMappingSchema = csvMappingShape.superRefine((mapping, context: z.core.$RefinementCtx) => {
  for (const { path, message } of problemsOf(mapping)) context.addIssue({ code: "custom", path: [...path], message });
});

function* problemsOf(mapping: CsvMapping): Iterable<Problem> {
  yield* dateProblems(mapping.dateFormats);
  for (const field of REFERENCE_FIELDS) {
    const extract = mapping[field]?.extract;
    const read = extract && extractPattern(extract.pattern, extract.ignoreCase);
    if (read !== undefined && "reason" in read) yield { path: [field, "extract", "pattern"], message: read.reason };
  }
  const { amount, currency } = mapping;
  if ("fixed" in currency && currencyExponent(currency.fixed) === undefined)
    yield { path: ["currency", "fixed"], message: "Must be an ISO 4217 code." };
  if (mapping.thousandsSeparator === mapping.decimalSeparator)
    yield { path: ["thousandsSeparator"], message: "Thousands and decimals cannot have the same separator." };
  if (amount.rule === "debit_credit" && amount.debitColumn === amount.creditColumn)
    yield { path: ["amount", "creditColumn"], message: "Debit and credit cannot be the same column." };
  if (amount.rule === "direction" && amount.directionColumn === amount.column)
    yield { path: ["amount", "directionColumn"], message: "The direction cannot be in the column of the amount." };
  if ("moneyIn" in amount && "moneyOut" in amount && amount.moneyIn.some((one) => amount.moneyOut.includes(one)))
    yield { path: ["amount", "moneyOut"], message: "A word means money in or money out, not both." };
}

function* dateProblems(formats: readonly string[]): Iterable<Problem> {
  for (const [index, format] of formats.entries()) {
    if (dateFormat(format) === undefined)
      yield { path: ["dateFormats", index], message: `${JSON.stringify(format)} is no format of dates.` };
  }
  if (areAmbiguous(formats))
    yield {
      path: ["dateFormats"],
      message:
        "Two of the formats differ only in the order of day, month or short year, so one text could mean two dates.",
    };
}

/** Every column that a mapping reads, once. */
export function columnsOf(mapping: CsvMapping): readonly string[] {
  const { amount, bookedOn, currency, kind: kinds, skip, text } = mapping;
  const single = [mapping.fee, mapping.net, mapping.tip, mapping.valueOn, currency, kinds, amount, bookedOn, ...skip];
  const references = REFERENCE_FIELDS.map((field) => mapping[field]);
  const names = [...single, ...references].flatMap((part) =>
    part !== undefined && "column" in part ? [part.column] : [],
  );
  const further = [
    ...(amount.rule === "debit_credit" ? [amount.debitColumn, amount.creditColumn] : []),
    ...(amount.rule === "direction" ? [amount.directionColumn] : []),
    ...(bookedOn.timeColumn === undefined ? [] : [bookedOn.timeColumn]),
    ...(text?.columns ?? []),
  ];
  return [...new Set([...names, ...further])];
}

export const REFERENCE_FIELDS = [
  "providerReference",
  "paymentReference",
  "merchantReference",
  "payoutReference",
  "terminal",
  "account",
] as const;
