/**
 * Why a row of a statement is malformed. The parsers write a sentence for logs, commands and the database. Here each
 * sentence has a code, which programs and pages use, and its parameters. `malformedReason` parses a sentence, so rows
 * that were stored earlier have codes, too.
 */
import { z } from "zod";

/** By code: the sentence with its parameters. `{text}` is the text of the file, in quotes. */
export const MALFORMED_SENTENCES = {
  /** All formats. */
  unknown_currency: "{text} is no ISO 4217 currency.",
  no_number: "{text} is not a decimal number.",
  no_minor_units: "{text} is not a whole number of minor units.",
  no_hundredths: "{text} is not a whole number of hundredths.",
  too_many_decimals: "{amount} has more decimals than {currency} has ({limit}).",
  too_many_digits: "The amount has more than {limit} digits.",
  too_long: "The value is longer than {limit} characters.",
  known_with_other_amount:
    "The account has this line already, with the amount {known} {known_currency} in minor units; this file has {found} {found_currency}. If this file is wrong, withdraw it. If the other file is wrong, withdraw both, and upload this one again.",
  /** CSV files and other tables. */
  wrong_quotes: "A quote is in the wrong place or is never closed.",
  wrong_width: "The row has {fields} fields, and the header has {columns} columns.",
  wrong_width_after_type: "The row has {fields} fields after its type, and the header has {columns} columns.",
  no_amount: "The row has no amount.",
  no_currency: "The row has an amount without its currency.",
  no_date: "The row has no date.",
  no_type: "The row has no type.",
  no_category: "The row has no category.",
  no_transaction_id: "The row has no transaction id.",
  no_payment_id: "The row has no payment id.",
  not_a_date: "{text} is no date that the report has.",
  not_an_instant: "{text} is no date and time in ISO 8601.",
  unknown_word: "{text} is no word that is known here.",
  changed_by_spreadsheet: "{text} is an id that a spreadsheet has changed; import the file as the provider made it.",
  two_ways_to_read: "{text} can be read in two ways, and no amount before it shows which one is meant.",
  negative_sale: "A sale has a negative amount.",
  /** Tables with a stored mapping. */
  unmapped_kind: "The mapping has no kind for {text}.",
  unmapped_direction: "The mapping has no direction for {text}.",
  no_direction: "{text} has no direction that the mapping knows.",
  debit_and_credit: "The row has an amount in both columns or in none of them.",
  sign_beside_direction: "{text} has a sign beside the direction.",
  other_separator: "{text} has another separator than the mapping declares.",
  date_in_other_format: "{text} is no date in {formats}.",
  not_a_time: "{text} is no time of day.",
  /** PayPal reports. */
  fee_not_between: "The fee is not what lies between gross and net.",
  neither_cr_nor_dr: "{text} is neither CR nor DR.",
  no_footer: "The file has no footer (FF), so its end may be missing; download it again.",
  wrong_row_count: "The section states {stated} rows and has {found}; download the file again.",
  no_column_headers: "The row has no column headers (CH) before it.",
  unknown_row_type: "{text} is no type of row that the report has.",
  /** camt files. */
  neither_crdt_nor_dbit: "CdtDbtInd is neither CRDT nor DBIT.",
  unknown_status: "The status is none of BOOK, PDNG, INFO and FUTR.",
  date_not_in_calendar: "The date is not in the calendar.",
  entry_without_date: "The entry has neither a booking date nor a value date.",
  entry_too_large: "The entry has more than {transactions} transactions or {characters} characters.",
  entry_without_amount: "The amount is missing; it is not taken from elsewhere in the entry.",
  negative_amount: "The amount is negative; camt gives the sign in CdtDbtInd.",
  balance_unreadable: "The balance {balance} cannot be read: {detail}",
  balance_without_direction: "The balance {balance} has no CdtDbtInd that is CRDT or DBIT.",
  /** MT940 files. */
  entry_outside_statement: "The entry stands after the end of its statement, or before its :20:.",
  entry_after_closing: "The entry stands after the closing balance of its statement.",
  no_opening_balance: "The statement has no opening balance that names the currency.",
  no_closing_balance: "The statement has no closing balance.",
  not_a_balance: "The balance is not of the form mark, date, currency and amount.",
  not_an_entry: "The field is not of the form date, mark (C, D, RC or RD), amount, type and references.",
  balance_date_not_in_calendar: "The date {date} is not in the calendar.",
  value_date_not_in_calendar: "The value date {date} is not in the calendar.",
  entry_date_not_in_calendar: "The entry date {date} is not in the calendar.",
} as const;
type Sentences = typeof MALFORMED_SENTENCES;
/** `other`: another version of the service has written the sentence, and this one does not know it. */
export type MalformedReason = keyof Sentences | "other";
export const MALFORMED_REASONS: readonly MalformedReason[] = [
  ...(Object.keys(MALFORMED_SENTENCES) as (keyof Sentences)[]),
  "other",
];

type NamesIn<S extends string> = S extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
/** The parameters of a code by name, all as text. */
export type MalformedParameters<C extends MalformedReason> = Readonly<
  Record<C extends keyof Sentences ? NamesIn<Sentences[C]> : never, string>
>;

/** An unknown code of another version must not make the row invalid: the row has its sentence. */
export const malformedReasonSchema = z.object({
  reasonCode: z.enum(MALFORMED_REASONS).catch("other"),
  reasonParameters: z.record(z.string(), z.string()).catch({}),
});

const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`;
const PATTERNS = Object.entries(MALFORMED_SENTENCES).map(([code, sentence]) => {
  const source = sentence
    .replaceAll(/[.()]/g, String.raw`\$&`)
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => `(?<${name}>${name === "text" ? QUOTED : ".+?"})`);
  return { code: code as MalformedReason, pattern: new RegExp(`^${source}$`, "su") };
});

/** The code and the parameters of a parser's sentence. */
export function malformedReason(sentence: string): z.infer<typeof malformedReasonSchema> {
  for (const { code, pattern } of PATTERNS) {
    const match = pattern.exec(sentence);
    if (match === null) continue;
    const parameters = Object.entries(match.groups ?? {}).map(([name, value]) => [name, unquoted(value)] as const);
    return { reasonCode: code, reasonParameters: Object.fromEntries(parameters) };
  }
  return { reasonCode: "other", reasonParameters: {} };
}

/**
 * A parameter without its quotes. The database cannot hold NUL or half of a surrogate pair; a quoted text has escapes
 * for them.
 */
function unquoted(value: string): string {
  if (!/^".*"$/su.test(value)) return value;
  try {
    return String(JSON.parse(value));
  } catch {
    return value.slice(1, -1);
  }
}
