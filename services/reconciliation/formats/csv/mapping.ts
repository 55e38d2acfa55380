/** How the columns of a CSV file without a dictionary become the fields of a line, as an operator stores it. */
import { z } from "zod";
import { currencyExponent } from "../../../../machines/currency.ts";
import { ENCODINGS, type Encoding } from "../encodings.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { LINE_KINDS } from "../line-kinds.ts";
import { areAmbiguous, dateFormat } from "./declared-dates.ts";
import { DELIMITERS } from "./delimiters.ts";
import { extractPattern } from "./extract-pattern.ts";

const MAPPING_LIMITS = { rules: 20, words: 200, wordCharacters: 200, dateFormats: 5, textColumns: 10 } as const;

/** A column's name as in the header, without the spaces around it. */
const column = z.string().trim().min(1).max(FORMAT_LIMITS.detailNameCharacters);
const word = z.string().min(1).max(MAPPING_LIMITS.wordCharacters);
const words = z.array(word).min(1).max(MAPPING_LIMITS.words);
const kind = z.enum(LINE_KINDS);

const pattern = z
  .strictObject({ pattern: z.string(), ignoreCase: z.boolean().default(false) })
  .superRefine(({ pattern: source, ignoreCase }, context) => {
    const read = extractPattern(source, ignoreCase);
    if ("reason" in read) context.addIssue({ code: "custom", message: read.reason });
  });

/** A reference: a column, or what a pattern finds in it. */
const reference = z.strictObject({ column, extract: pattern.optional() });

const amountRule = z.discriminatedUnion("rule", [
  /** One column with a sign. */
  z.strictObject({ rule: z.literal("signed"), column, moneyIn: z.enum(["positive", "negative"]) }),
  /** Two columns without a sign; each row has one of them. */
  z.strictObject({ rule: z.literal("debit_credit"), debitColumn: column, creditColumn: column }),
  /** A column without a sign, beside a column with a word for the direction. */
  z.strictObject({ rule: z.literal("direction"), column, directionColumn: column, moneyIn: words, moneyOut: words }),
  /** A column whose text begins or ends with a word for the direction: `12.50 DR`. */
  z.strictObject({ rule: z.literal("affix"), column, moneyIn: words, moneyOut: words }),
]);

const dateFormats = z
  .array(z.string().max(40))
  .min(1)
  .max(MAPPING_LIMITS.dateFormats)
  .superRefine((formats, context) => {
    for (const format of formats) {
      if (dateFormat(format) === undefined)
        context.addIssue({ code: "custom", message: `${JSON.stringify(format)} is no format of dates.` });
    }
    if (areAmbiguous(formats))
      context.addIssue({
        code: "custom",
        message: "Two of the formats have the day and the month in each other's place.",
      });
  });

const fields = z.strictObject({
  encoding: z.enum(ENCODINGS as readonly [Encoding, ...Encoding[]]),
  delimiter: z.enum(DELIMITERS),
  /** The physical line of the header, from 1; what is above it is skipped. */
  headerRow: z.int().min(1).max(FORMAT_LIMITS.preambleLines),
  /** Rows that are no lines, such as a sum below the last row. */
  skip: z
    .array(
      z.union([
        z.strictObject({ rowBeginsWith: word }),
        z.strictObject({
          column,
          is: z.array(z.string().max(MAPPING_LIMITS.wordCharacters)).min(1).max(MAPPING_LIMITS.words),
        }),
      ]),
    )
    .max(MAPPING_LIMITS.rules)
    .default([]),
  /** Whether the spaces around a value are no part of it. */
  trim: z.boolean().default(true),
  decimalSeparator: z.enum([".", ","]),
  thousandsSeparator: z.enum(["none", ".", ",", "'", " "]).default("none"),
  /** `minor`: amounts are whole numbers of the smallest unit. */
  units: z.enum(["major", "minor"]).default("major"),
  currency: z.union([
    z.strictObject({ column }),
    z.strictObject({ fixed: z.string().refine((code) => currencyExponent(code) !== undefined, "an ISO 4217 code") }),
  ]),
  amount: amountRule,
  /** `cost_is_positive`: the column says what the merchant pays. */
  fee: z.strictObject({ column, sign: z.enum(["cost_is_positive", "cost_is_negative"]) }).optional(),
  net: z.strictObject({ column }).optional(),
  /** Part of the amount. */
  tip: z.strictObject({ column }).optional(),
  dateFormats,
  bookedOn: z.strictObject({ column, timeColumn: column.optional() }),
  valueOn: z.strictObject({ column }).optional(),
  /** Without a default, a word that is not listed makes its row malformed. */
  kind: z.union([
    z.strictObject({ fixed: kind }),
    z.strictObject({ column, words: z.record(word, kind), default: kind.optional() }),
  ]),
  providerReference: reference.optional(),
  paymentReference: reference.optional(),
  merchantReference: reference.optional(),
  payoutReference: reference.optional(),
  terminal: reference.optional(),
  account: reference.optional(),
  /** Their values, with a space between them. */
  text: z.strictObject({ columns: z.array(column).min(1).max(MAPPING_LIMITS.textColumns) }).optional(),
});

export const csvMappingSchema = fields.superRefine((mapping, context) => {
  if (mapping.thousandsSeparator === mapping.decimalSeparator)
    context.addIssue({ code: "custom", message: "Thousands and decimals cannot have the same separator." });
  const { amount } = mapping;
  const both =
    "moneyIn" in amount && "moneyOut" in amount ? amount.moneyIn.filter((one) => amount.moneyOut.includes(one)) : [];
  if (both.length > 0) context.addIssue({ code: "custom", message: "A word means money in or money out, not both." });
});

export type CsvMapping = z.infer<typeof csvMappingSchema>;

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
