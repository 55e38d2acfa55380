/** The definition of a mapping on the wire: the same as on the bus (`csvMappingShape`), with the field names of the wire. */
import { z } from "zod";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { FOR_FIELD_ERRORS, fieldErrors } from "../../../services/bus/field-errors.ts";
import { type CsvMapping, csvMappingShape, MAPPING_BOUNDS } from "../../../services/bus/messages/csv-mapping.ts";
import { DELIMITERS, ENCODINGS } from "../../../services/bus/messages/statement-formats.ts";
import { ApiError } from "../../http/handler-context.ts";
import { snakeCase } from "../../http/shared-schemas.ts";
import { lineKindSchema } from "./matches.ts";

const columnSchema = z.string().min(1).max(MAPPING_BOUNDS.columnCharacters);
const wordSchema = z.string().min(1).max(MAPPING_BOUNDS.wordCharacters);
const wordsSchema = z.array(wordSchema).min(1).max(MAPPING_BOUNDS.words);
const moneySchema = { money_in: wordsSchema, money_out: wordsSchema };
const ofColumn = z.strictObject({ column: columnSchema });
const referenceSchema = z
  .strictObject({
    column: columnSchema,
    extract: z.strictObject({ pattern: z.string(), ignore_case: z.boolean().optional() }).optional().meta({
      description:
        "A pattern that takes the reference out of the value: what its group matches, or the whole match without a group. It is in a subset of regular expressions that cannot run for long.",
    }),
  })
  .meta({ id: "MappedReference" });

const amountSchema = z
  .discriminatedUnion("rule", [
    z.strictObject({
      rule: z.literal("signed"),
      column: columnSchema,
      money_in: z.enum(["positive", "negative"]).meta({ id: "MappedSign" }),
    }),
    z.strictObject({ rule: z.literal("debit_credit"), debit_column: columnSchema, credit_column: columnSchema }),
    z.strictObject({
      rule: z.literal("direction"),
      column: columnSchema,
      direction_column: columnSchema,
      ...moneySchema,
    }),
    z.strictObject({ rule: z.literal("affix"), column: columnSchema, ...moneySchema }),
  ])
  .meta({
    description:
      "`signed`: a column with a sign; `debit_credit`: two columns, one of them filled; `direction`: a column beside one with a word for the direction; `affix`: a column that begins or ends with such a word.",
  });

const EXAMPLE = {
  encoding: "windows-1252",
  delimiter: ";",
  header_row: 1,
  decimal_separator: ",",
  thousands_separator: ".",
  currency: { fixed: "EUR" },
  amount: { rule: "signed", column: "Betrag", money_in: "positive" },
  date_formats: ["DD.MM.YYYY"],
  booked_on: { column: "Buchungstag" },
  kind: { column: "Art", words: { Gutschrift: "bank_credit", Lastschrift: "bank_debit" } },
  text: { columns: ["Verwendungszweck"] },
} as const;

export const encodingSchema = z.enum(ENCODINGS).meta({ id: "StatementEncoding" });
export const definitionSchema = z
  .strictObject({
    encoding: encodingSchema,
    delimiter: z.enum(DELIMITERS).meta({ id: "MappedDelimiter" }),
    header_row: z
      .int()
      .min(1)
      .max(MAPPING_BOUNDS.headerRow)
      .meta({ description: "The line of the header, from 1; the lines above it are skipped." }),
    skip: z
      .array(
        z.union([
          z.strictObject({ row_begins_with: wordSchema }),
          z.strictObject({
            column: columnSchema,
            is: z.array(z.string().max(MAPPING_BOUNDS.wordCharacters)).min(1).max(MAPPING_BOUNDS.words),
          }),
        ]),
      )
      .max(MAPPING_BOUNDS.rules)
      .optional()
      .meta({ description: "Rows that are not lines, for example a sum below the last row." }),
    trim: z
      .boolean()
      .optional()
      .meta({ description: "Whether spaces around a value are removed; true when left out." }),
    decimal_separator: z.enum([".", ","]).meta({ id: "MappedDecimalSeparator" }),
    thousands_separator: z
      .enum(["none", ".", ",", "'", " "])
      .meta({ id: "MappedThousandsSeparator" })
      .optional()
      .meta({ description: "`none` when left out." }),
    units: z
      .enum(["major", "minor"])
      .meta({ id: "MappedUnits" })
      .optional()
      .meta({ description: "`minor`: amounts are whole numbers of the smallest unit; `major` when left out." }),
    currency: z.union([ofColumn, z.strictObject({ fixed: z.string().length(BOUNDS.currencyCharacters) })]),
    amount: amountSchema,
    fee: z
      .strictObject({
        column: columnSchema,
        sign: z.enum(["cost_is_positive", "cost_is_negative"]).meta({ id: "MappedFeeSign" }),
      })
      .optional(),
    net: ofColumn.optional(),
    tip: ofColumn.optional().meta({ description: "A part of the amount." }),
    date_formats: z
      .array(z.string().max(MAPPING_BOUNDS.dateFormatCharacters))
      .min(1)
      .max(MAPPING_BOUNDS.dateFormats)
      .meta({ description: "For example `DD.MM.YYYY`. No two formats may fit the same date." }),
    booked_on: z.strictObject({ column: columnSchema, time_column: columnSchema.optional() }),
    value_on: ofColumn.optional(),
    kind: z
      .union([
        z.strictObject({ fixed: lineKindSchema }),
        z.strictObject({
          column: columnSchema,
          words: z.record(wordSchema, lineKindSchema),
          default: lineKindSchema.optional(),
        }),
      ])
      .meta({ description: "Without a default, a word that is not listed makes its row malformed." }),
    provider_reference: referenceSchema.optional(),
    payment_reference: referenceSchema.optional(),
    merchant_reference: referenceSchema.optional(),
    payout_reference: referenceSchema.optional(),
    terminal: referenceSchema.optional(),
    account: referenceSchema.optional(),
    text: z
      .strictObject({ columns: z.array(columnSchema).min(1).max(MAPPING_BOUNDS.textColumns) })
      .optional()
      .meta({ description: "The values of these columns, with a space between them." }),
  })
  .meta({
    id: "StatementMappingDefinition",
    description: "How the columns of a CSV file become the fields of a line. Nothing is guessed.",
    examples: [EXAMPLE],
  });
type Definition = z.infer<typeof definitionSchema>;

type SnakeName<T extends string> = T extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${SnakeName<Tail>}`
  : T;
/** The same type with the field names of the wire. The keys of a record do not change. */
type OnWire<T> = T extends string | number | boolean | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? OnWire<Item>[]
    : string extends keyof T
      ? T
      : { [Key in keyof T as SnakeName<Key & string>]: OnWire<T[Key]> };

/** The field whose keys are words of the file, not field names. */
const RECORD = "words";

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, part]) => [
    rename(name),
    name === RECORD ? part : renamed(part, rename),
  ]);
  return Object.fromEntries(entries);
}

const fromWire = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

export function definitionJson(definition: CsvMapping): Definition {
  return renamed(definition, snakeCase) as OnWire<CsvMapping>;
}

/** The definition with its defaults. Throws `invalid_request`. */
export function definitionOf(definition: Definition): CsvMapping {
  const { data, error } = csvMappingShape.safeParse(renamed(definition, fromWire), FOR_FIELD_ERRORS);
  if (data !== undefined) return data;
  const errors = fieldErrors(error.issues, (path) =>
    ["/definition", ...path.map((part) => snakeCase(String(part)))].join("/"),
  );
  throw new ApiError("invalid_request", { errors });
}
