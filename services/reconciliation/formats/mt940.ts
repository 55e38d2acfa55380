/** MT940, the customer statement of SWIFT, as banks write it: in blocks or plain, one statement after another. */
import { LineSplitter } from "./csv/physical-lines.ts";
import {
  type LineKind,
  NOT_MONEY_REASON,
  type StatementFormat,
  type StatementRecord,
  StatementRefusedError,
} from "./format.ts";
import { FORMAT_LIMITS } from "./limits.ts";
import { type EntryLine, readAmount, readEntryLine, shortDate } from "./mt940/entry-line.ts";
import { type Field, FieldReader } from "./mt940/fields.ts";
import { readInformation } from "./mt940/information.ts";
import { headerRecord, lineRecord, malformedRecord, NEXT_FILE, totalRecord } from "./records.ts";
import { SeenStatements } from "./seen-statements.ts";
import { type Days, daysOfBalances, withDay } from "./statement-days.ts";

export const MT940: StatementFormat = {
  name: "mt940",
  version: 2,
  title: "Bank statement (SWIFT MT940)",
  referenceScope: "day",
  detect: (head) => [/^:20:/m, /^:25P?:/m, /^:60[FM]:[CD]\d{6}[A-Z]{3}\d/m].every((field) => field.test(head)),
  parse: records,
};

interface Balance {
  readonly minor: bigint;
  readonly currency: string;
  /** Undefined where the date is not in the calendar. */
  readonly on: string | undefined;
}

interface Statement {
  readonly reference: string;
  readonly position: number;
  account: string;
  number: string;
  hasHeader: boolean;
  opening: Balance | undefined;
  /** As the file has it. */
  openingField: string;
  /** The currency of the opening balance, also when the rest of it cannot be read: the entries name no currency. */
  currency: string | undefined;
  sumMinor: bigint;
  /** The first and the last day of its entries. */
  days: Days | undefined;
  closing: Balance | undefined;
  hasClosing: boolean;
}

/** An entry that waits for the fields that belong to it. */
interface Entry {
  readonly field: Field;
  readonly information: string[];
  readonly further: string[];
}

async function* records(text: AsyncIterable<string>): AsyncGenerator<StatementRecord> {
  const splitter = new LineSplitter();
  const fields = new FieldReader();
  const reader = new Mt940Reader();
  let characters = 0;
  for await (const chunk of text) {
    for (const field of fields.read(splitter.push(chunk))) yield* reader.read(field);
    characters += chunk.length;
    if (!reader.hasStatement && !fields.isInside && characters > FORMAT_LIMITS.headCharacters) throw notMt940();
  }
  for (const field of fields.read(splitter.end())) yield* reader.read(field);
  for (const field of fields.end()) yield* reader.read(field);
  yield* reader.end();
}

function notMt940(): StatementRefusedError {
  return new StatementRefusedError(
    "not_this_format",
    "The file has no field :20:, which begins an MT940: declare its format.",
  );
}

class Mt940Reader {
  #statement: Statement | undefined;
  #entry: Entry | undefined;
  /** The interim closing balance of a page, which the next page of the account must open with. */
  #carried: { readonly account: string; readonly balance: Balance } | undefined;
  readonly #seen = new SeenStatements();
  hasStatement = false;

  *read(field: Field): Generator<StatementRecord> {
    if (field.tag === "20") {
      yield* this.#endStatement();
      this.#statement = statementOf(field);
      this.hasStatement = true;
    } else if (field.tag === "end") yield* this.#endStatement();
    else if (this.#statement !== undefined) yield* this.#readField(this.#statement, field);
    else if (field.tag === "61")
      yield malformed(field, "The entry stands after the end of its statement, or before its :20:.");
  }

  *end(): Generator<StatementRecord> {
    if (!this.hasStatement) throw notMt940();
    if (this.#statement !== undefined && this.#statement.closing === undefined)
      throw new StatementRefusedError(
        "truncated",
        "The closing balance (:62F:) of the last statement is missing or cannot be read, so the end of the file may be missing: download it from the bank again.",
      );
    yield* this.#endStatement();
  }

  *#readField(statement: Statement, field: Field): Generator<StatementRecord> {
    const value = field.lines.find((line) => line.trim() !== "")?.trim() ?? "";
    if (field.tag === "86") this.#entry?.information.push(...field.lines);
    else if (field.tag === "NS") this.#entry?.further.push(...field.lines);
    else yield* this.#endEntry(statement);
    if (field.tag.startsWith("25")) statement.account = value;
    else if (field.tag.startsWith("28")) statement.number = value;
    else if (field.tag.startsWith("60")) yield* this.#readOpening(statement, field, value);
    else if (field.tag === "61" && statement.hasClosing)
      yield malformed(field, "The entry stands after the closing balance of its statement.");
    else if (field.tag === "61") {
      yield* this.#header(statement);
      this.#entry = { field, information: [], further: [] };
    } else if (field.tag.startsWith("62")) yield* this.#readClosing(statement, field, value);
  }

  *#readOpening(statement: Statement, field: Field, value: string): Generator<StatementRecord> {
    const { balance, currency, reason } = readBalance(value);
    statement.openingField = `${field.tag} ${value}`;
    statement.currency = currency;
    statement.opening = balance;
    yield* this.#header(statement);
    if (reason !== undefined) yield malformed(field, reason);
    const carried = this.#carried;
    this.#carried = undefined;
    if (field.tag !== "60M" || balance === undefined || carried?.account !== statement.account) return;
    if (carried.balance.currency !== balance.currency) return;
    yield totalRecord({
      name: named("balance carried to", statement),
      currency: balance.currency,
      statedMinor: balance.minor,
      computedMinor: carried.balance.minor,
    });
  }

  *#readClosing(statement: Statement, field: Field, value: string): Generator<StatementRecord> {
    const { balance, reason } = readBalance(value);
    statement.hasClosing = true;
    statement.closing = balance;
    yield* this.#header(statement);
    if (reason !== undefined) yield malformed(field, reason);
    this.#carried = field.tag === "62M" && balance !== undefined ? { account: statement.account, balance } : undefined;
  }

  *#header(statement: Statement): Generator<StatementRecord> {
    if (statement.hasHeader) return;
    statement.hasHeader = true;
    const { account, currency, reference, number, openingField } = statement;
    // Most banks write the same reference and number each day.
    if (this.#seen.isRepeated([reference, account, number, openingField])) yield NEXT_FILE;
    yield headerRecord({ account, currency, fromDate: undefined, toDate: undefined });
  }

  *#endEntry(statement: Statement): Generator<StatementRecord> {
    const entry = this.#entry;
    this.#entry = undefined;
    if (entry === undefined) return;
    if (statement.currency === undefined) {
      yield malformed(entry.field, "The statement has no opening balance that names the currency.");
      return;
    }
    const line = readEntryLine(entry.field.lines, statement.currency);
    if ("reason" in line) {
      yield malformed(entry.field, line.reason);
      return;
    }
    statement.sumMinor += line.amountMinor;
    statement.days = withDay(statement.days, line.bookedOn);
    yield entryRecord(statement, statement.currency, entry, line);
  }

  *#endStatement(): Generator<StatementRecord> {
    const statement = this.#statement;
    if (statement === undefined) return;
    yield* this.#endEntry(statement);
    this.#statement = undefined;
    yield* this.#header(statement);
    const { closing, opening } = statement;
    if (!statement.hasClosing) {
      const reason = "The statement has no closing balance.";
      yield malformedRecord({ position: statement.position, column: ":62F:", reason, raw: statement.reference });
    }
    if (closing === undefined) return;
    yield* daysRecords(statement, closing);
    const openingMinor = opening?.currency === closing.currency ? opening.minor : 0n;
    const sumMinor = statement.currency === closing.currency ? statement.sumMinor : 0n;
    yield totalRecord({
      name: named("closing balance of", statement),
      currency: closing.currency,
      statedMinor: closing.minor,
      computedMinor: openingMinor + sumMinor,
    });
  }
}

function statementOf({ lines, position }: Field): Statement {
  return {
    reference: lines.join("").trim(),
    position,
    account: "",
    number: "",
    hasHeader: false,
    opening: undefined,
    openingField: "",
    currency: undefined,
    sumMinor: 0n,
    days: undefined,
    closing: undefined,
    hasClosing: false,
  };
}

/** Most banks write the same :20: in each statement; only the number makes it unique. */
function named(what: string, { reference, number }: Statement): string {
  return `${what} ${`${reference} ${number}`.trim()}`;
}

/** Known only at the end of the statement. */
function* daysRecords(statement: Statement, { on: closingOn }: Balance): Generator<StatementRecord> {
  const { account, currency, opening, days } = statement;
  if (closingOn === undefined) return;
  const { from, to } = daysOfBalances(opening?.on, closingOn, days);
  yield headerRecord({ account, currency, fromDate: from, toDate: to });
}

/** "C260302EUR1234,56". A date that is not in the calendar is reported, and the balance counts all the same. */
function readBalance(value: string): {
  readonly balance?: Balance;
  readonly currency?: string;
  readonly reason?: string;
} {
  const {
    mark,
    date = "",
    currency = "",
    amount = "",
  } = /^(?<mark>[CD])(?<date>\d{6})(?<currency>[A-Z]{3})(?<amount>[\d,.]+)$/.exec(value)?.groups ?? {};
  if (mark === undefined) return { reason: "The balance is not of the form mark, date, currency and amount." };
  const reading = readAmount(amount, currency);
  if ("reason" in reading) return { currency, reason: reading.reason };
  const on = shortDate(date);
  const balance = { minor: mark === "D" ? -reading.minor : reading.minor, currency, on };
  if (on === undefined) return { balance, currency, reason: `The date ${date} is not in the calendar.` };
  return { balance, currency };
}

function entryRecord(
  { account }: Statement,
  currency: string,
  { field, information, further }: Entry,
  line: EntryLine,
) {
  const { text, endToEndId, details, ...others } = readInformation(information);
  const ownerReference = line.ownerReference === "" ? others.ownerReference : line.ownerReference;
  const addition = further.join("\n").trim();
  const kind = kindOf(line);
  return lineRecord({
    position: field.position,
    kind,
    providerType: line.type,
    amountMinor: line.amountMinor,
    currency,
    bookedOn: line.bookedOn,
    valueOn: line.valueOn,
    providerReference: line.bankReference,
    merchantReference: endToEndId === "" ? ownerReference : endToEndId,
    account,
    text: [text, addition, line.supplement].find((part) => part !== "") ?? "",
    details: [
      [NOT_MONEY_REASON, kind === "not_money" ? "zero amount" : undefined],
      ["value date", line.wrongValueDate],
      ["mark", line.mark.length === 2 ? line.mark : undefined],
      ["funds code", line.fundsCode],
      ["reference", endToEndId === "" || endToEndId === ownerReference ? undefined : ownerReference],
      ["supplementary details", line.supplement],
      ...details,
      [":NS:", text === "" ? undefined : addition],
    ],
  });
}

/** SWIFT's types that give the reason of a movement; the others give its channel. */
const KINDS: Readonly<Record<string, LineKind>> = { CHG: "fee", COM: "fee", BRF: "fee", FEX: "conversion" };

function kindOf({ amountMinor, type }: EntryLine): LineKind {
  if (amountMinor === 0n) return "not_money";
  return KINDS[type.slice(1)] ?? (amountMinor < 0n ? "bank_debit" : "bank_credit");
}

function malformed({ tag, position, lines }: Field, reason: string): StatementRecord {
  return malformedRecord({ position, column: `:${tag}:`, reason, raw: lines.join("\n") });
}
