/**
 * The shape of a mapping: how the columns of a CSV file become the fields of a line. An operator stores it for a file
 * that no dictionary knows. The reconciliation service checks the rules that a shape cannot express
 * (`csvMappingSchema`).
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { DELIMITERS, ENCODINGS, LINE_KINDS } from "./statement-formats.ts";

/** The bounds of a mapping, with their reasons. */
export const MAPPING_BOUNDS = {
  /** A file that seems to need more rules to skip rows usually needs another `headerRow` instead. */
  rules: 20,
  /** A provider has about fifty words for the kinds of its rows. */
  words: 200,
  wordCharacters: 200,
  /** One file has one format of dates, rarely two. */
  dateFormats: 5,
  dateFormatCharacters: 40,
  textColumns: 10,
  columnCharacters: 128,
  /** Account, period and legal text above a header need about 20 lines. */
  headerRow: 100,
} as const;

/** A column's name as in the header, without the spaces around it. */
const column = z.string().trim().min(1).max(MAPPING_BOUNDS.columnCharacters);
const word = z.string().min(1).max(MAPPING_BOUNDS.wordCharacters);
const words = z.array(word).min(1).max(MAPPING_BOUNDS.words);
const kind = z.enum(LINE_KINDS);

const pattern = z.strictObject({ pattern: z.string(), ignoreCase: z.boolean().default(false) });
/** A reference: a column, or the match of a pattern in it. */
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

export const csvMappingShape = z.strictObject({
  encoding: z.enum(ENCODINGS),
  delimiter: z.enum(DELIMITERS),
  /** The physical line of the header, from 1; what is above it is skipped. */
  headerRow: z.int().min(1).max(MAPPING_BOUNDS.headerRow),
  /** Rules for rows that are not lines, such as a sum below the last row. */
  skip: z
    .array(
      z.union([
        z.strictObject({ rowBeginsWith: word }),
        z.strictObject({
          column,
          is: z.array(z.string().max(MAPPING_BOUNDS.wordCharacters)).min(1).max(MAPPING_BOUNDS.words),
        }),
      ]),
    )
    .max(MAPPING_BOUNDS.rules)
    .default([]),
  /** Whether to remove the spaces around a value. */
  trim: z.boolean().default(true),
  decimalSeparator: z.enum([".", ","]),
  thousandsSeparator: z.enum(["none", ".", ",", "'", " "]).default("none"),
  /** `minor`: amounts are whole numbers of the smallest unit. */
  units: z.enum(["major", "minor"]).default("major"),
  currency: z.union([
    z.strictObject({ column }),
    z.strictObject({ fixed: z.string().length(BOUNDS.currencyCharacters) }),
  ]),
  amount: amountRule,
  /** `cost_is_positive`: a positive value is what the merchant pays. */
  fee: z.strictObject({ column, sign: z.enum(["cost_is_positive", "cost_is_negative"]) }).optional(),
  net: z.strictObject({ column }).optional(),
  /** The tip is a part of the amount. */
  tip: z.strictObject({ column }).optional(),
  dateFormats: z.array(z.string().max(MAPPING_BOUNDS.dateFormatCharacters)).min(1).max(MAPPING_BOUNDS.dateFormats),
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
  /** The text of a line: the values of the columns, with a space between them. */
  text: z.strictObject({ columns: z.array(column).min(1).max(MAPPING_BOUNDS.textColumns) }).optional(),
});
export type CsvMapping = z.infer<typeof csvMappingShape>;
