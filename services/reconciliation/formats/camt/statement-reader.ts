/** Turns the XML events of a file into the records of its statements (`Stmt`) or notifications (`Ntfctn`), entry by entry. */
import { isoDate } from "../dates.ts";
import { type StatementRecord, StatementRefusedError } from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { headerRecord, lineRecord, malformedRecord, NEXT_FILE, totalRecord } from "../records.ts";
import { SeenStatements } from "../seen-statements.ts";
import { type Days, daysOfBalances, withDay } from "../statement-days.ts";
import { ElementBuilder, sourceOf, textAt, type XmlElement } from "./element.ts";
import { readEntry, TOO_LARGE } from "./entry.ts";
import { type CamtMessage, checkNamespace } from "./messages.ts";
import { type Balance, balanceTotals, EntrySums, readBalance, summaryTotals } from "./totals.ts";
import { type Transaction, transactionOf } from "./transaction.ts";
import type { XmlEvent } from "./xml.ts";

/** The parts of a statement that are read; the others are skipped. */
const READ = new Set(["Id", "CreDtTm", "FrToDt", "Acct", "Bal", "TxsSummry", "Ntry"]);
/** The elements beside `Id` that number a statement and its pages: some banks give each statement the same `Id`. */
const NUMBERS = new Set(["ElctrncSeqNb", "LglSeqNb", "StmtPgntn", "NtfctnPgntn"]);
/** The number of open elements below the document where the parts of a statement begin. */
const STATEMENT_DEPTH = 2;
/** Transactions are in `Ntry/NtryDtls/TxDtls`. */
const TRANSACTION = { name: "TxDtls", depth: 3 };
/** A business envelope around the document, with its header, has far fewer elements. */
const ENVELOPE_ELEMENTS = 1_000;

interface Statement {
  id: string;
  account: string;
  currency: string | undefined;
  /** The day on which the bank made it. */
  createdOn: string | undefined;
  fromDate: string | undefined;
  toDate: string | undefined;
  hasHeader: boolean;
  /** Of its entries. */
  days: Days | undefined;
  readonly numbers: string[];
  summary: XmlElement | undefined;
  readonly balances: Balance[];
  readonly sums: EntrySums;
}

export class StatementReader {
  readonly #message: CamtMessage;
  /** The names of the open elements, without those that `#builder` builds. */
  readonly #path: string[] = [];
  #documentUri: string | undefined;
  #documentDepth = 0;
  #outside = 0;
  #statement: Statement | undefined;
  #statements = 0;
  readonly #seen = new SeenStatements();
  #builder: ElementBuilder | undefined;
  #transactions: Transaction[] = [];
  #hasTooManyTransactions = false;
  #entries = 0;
  #position = 0;
  #records: StatementRecord[] = [];

  constructor(message: CamtMessage) {
    this.#message = message;
  }

  /** The records that the events complete. */
  read(events: readonly XmlEvent[]): readonly StatementRecord[] {
    for (const event of events) {
      if (event.type === "open") this.#open(event.uri, event.name, event.currency);
      else if (event.type === "text") this.#builder?.text(event.text);
      else this.#close();
    }
    const records = this.#records;
    this.#records = [];
    return records;
  }

  end(): void {
    if (this.#statements === 0)
      throw new StatementRefusedError(
        "not_this_format",
        `The file has no ${this.#message.statement}: declare its format.`,
      );
  }

  #open(uri: string, name: string, currency: string | undefined): void {
    if (this.#documentUri === undefined) {
      this.#openOutside(uri, name);
      return;
    }
    // An element of another namespace is an extension, whatever its name.
    const ownName = uri === this.#documentUri ? name : `{${uri}}${name}`;
    if (this.#builder !== undefined) {
      this.#builder.open(ownName, currency);
      return;
    }
    const depth = this.#path.length - this.#documentDepth;
    if (this.#statement !== undefined && depth === STATEMENT_DEPTH && (READ.has(ownName) || NUMBERS.has(ownName))) {
      this.#build(ownName, currency);
      return;
    }
    this.#path.push(ownName);
    if (depth === 0 && ownName !== this.#message.root)
      throw new StatementRefusedError(
        "not_this_format",
        `The document has no ${this.#message.root}: declare its format.`,
      );
    if (depth === 1 && ownName === this.#message.statement) this.#startStatement();
  }

  /** A document may be in an envelope, beside the envelope's header. */
  #openOutside(uri: string, name: string): void {
    this.#path.push(name);
    if (name === "Document") {
      checkNamespace(uri, this.#message);
      this.#documentUri = uri;
      this.#documentDepth = this.#path.length;
      return;
    }
    this.#outside += 1;
    if (this.#outside > ENVELOPE_ELEMENTS)
      throw new StatementRefusedError("not_this_format", "The file is no ISO 20022 message: declare its format.");
  }

  #close(): void {
    if (this.#builder !== undefined) {
      this.#closeBuilt(this.#builder);
      return;
    }
    const depth = this.#path.length - this.#documentDepth;
    this.#path.pop();
    if (this.#documentUri === undefined) return;
    if (this.#statement !== undefined && depth === STATEMENT_DEPTH) this.#endStatement(this.#statement);
    if (depth === 0) this.#documentUri = undefined;
  }

  #build(name: string, currency: string | undefined): void {
    this.#builder = new ElementBuilder(TRANSACTION, (element) => this.#addTransaction(element));
    this.#builder.open(name, currency);
    this.#transactions = [];
    this.#hasTooManyTransactions = false;
  }

  #addTransaction(element: XmlElement): void {
    if (this.#transactions.length < FORMAT_LIMITS.entryTransactions) this.#transactions.push(transactionOf(element));
    else this.#hasTooManyTransactions = true;
  }

  #closeBuilt(builder: ElementBuilder): void {
    const element = builder.close();
    if (element === undefined || this.#statement === undefined) return;
    this.#builder = undefined;
    const isTooLarge = builder.isTooLarge || this.#hasTooManyTransactions;
    if (isTooLarge && element.name !== "Ntry")
      throw new StatementRefusedError(
        "line_too_long",
        `A statement's ${element.name} has more than ${FORMAT_LIMITS.entryCharacters} characters, more than any real statement has.`,
      );
    this.#readPart(this.#statement, element, isTooLarge);
    this.#transactions = [];
  }

  #startStatement(): void {
    this.#statements += 1;
    this.#statement = {
      id: "",
      account: "",
      currency: undefined,
      createdOn: undefined,
      fromDate: undefined,
      toDate: undefined,
      hasHeader: false,
      days: undefined,
      numbers: [],
      summary: undefined,
      balances: [],
      sums: new EntrySums(),
    };
  }

  #readPart(statement: Statement, element: XmlElement, isTooLarge: boolean): void {
    if (element.name === "Id") statement.id = element.text.trim();
    else if (element.name === "CreDtTm") statement.createdOn = isoDate(element.text);
    else if (element.name === "Acct") readAccount(statement, element);
    else if (element.name === "FrToDt") readPeriod(statement, element);
    else if (NUMBERS.has(element.name)) addNumber(statement, element);
    else if (element.name === "TxsSummry") statement.summary = element;
    else if (element.name === "Bal") this.#readBalance(statement, element);
    else {
      this.#header(statement);
      this.#readEntry(statement, element, isTooLarge);
    }
  }

  #readBalance(statement: Statement, element: XmlElement): void {
    const balance = readBalance(element);
    if (balance === undefined) return;
    if ("reason" in balance) {
      this.#malformed("Bal", balance.reason, element);
      return;
    }
    statement.balances.push(balance);
    if (statement.balances.length > FORMAT_LIMITS.statementBalances)
      throw new StatementRefusedError(
        "too_large",
        `A statement has more than ${FORMAT_LIMITS.statementBalances} balances, more than any real statement has.`,
      );
  }

  #readEntry(statement: Statement, element: XmlElement, isTooLarge: boolean): void {
    this.#entries += 1;
    if (isTooLarge) {
      this.#malformed("Ntry", TOO_LARGE, element);
      return;
    }
    const entry = readEntry(element, this.#transactions, statement, this.#entries);
    if ("reason" in entry) {
      this.#malformed(entry.column, entry.reason, element);
      return;
    }
    statement.sums.add(entry.amountMinor, entry.currency, entry.isBooked);
    for (const line of entry.lines) {
      statement.days = withDay(statement.days, line.bookedOn);
      this.#records.push(lineRecord({ ...line, position: this.#nextPosition() }));
    }
  }

  #header(statement: Statement): void {
    if (statement.hasHeader) return;
    statement.hasHeader = true;
    const { account, currency, fromDate, toDate } = statement;
    if (this.#seen.isRepeated(identityOf(statement))) this.#records.push(NEXT_FILE);
    this.#records.push(headerRecord({ account, currency, fromDate, toDate }));
  }

  #endStatement(statement: Statement): void {
    this.#header(statement);
    this.#days(statement);
    const totals = [
      ...balanceTotals(statement.balances, statement.sums),
      ...summaryTotals(statement.summary, statement.currency, statement.sums),
    ];
    for (const total of totals) this.#records.push(totalRecord({ ...total, name: named(total.name, statement.id) }));
    this.#statement = undefined;
  }

  /** Many banks state no period. Then the days of the balances count; a file may have the balances after the entries. */
  #days({ account, currency, fromDate, toDate, balances, days }: Statement): void {
    const dated = balances.filter(({ date }) => date !== "").toSorted((a, b) => (a.date < b.date ? -1 : 1));
    const closing = dated.findLast(({ type }) => type === "CLBD");
    if (closing === undefined || (fromDate !== undefined && toDate !== undefined)) return;
    const opening = dated.find(({ type }) => type === "OPBD" || type === "PRCD");
    const { from, to } = daysOfBalances(opening?.date, closing.date, days);
    this.#records.push(headerRecord({ account, currency, fromDate: from, toDate: to }));
  }

  #malformed(column: string, reason: string, element: XmlElement): void {
    const position = this.#nextPosition();
    this.#records.push(malformedRecord({ position, column, reason, raw: sourceOf(element) }));
  }

  #nextPosition(): number {
    this.#position += 1;
    return this.#position;
  }
}
function addNumber({ numbers }: Statement, element: XmlElement): void {
  if (numbers.length < NUMBERS.size) numbers.push(sourceOf(element));
}

/** A repeated statement has the same opening balance, also when its entries were corrected. */
function identityOf({
  id,
  account,
  currency = "",
  fromDate = "",
  toDate = "",
  numbers,
  balances,
}: Statement): string[] {
  const beforeClosing = balances
    .filter(({ type }) => type !== "CLBD")
    .map(({ type, date, minor, currency: of }) => `${type} ${date} ${minor} ${of}`);
  return [id, account, currency, fromDate, toDate, ...numbers, ...beforeClosing];
}

function readAccount(statement: Statement, element: XmlElement): void {
  statement.account = textAt(element, "Id/IBAN", "Id/Othr/Id", "Id/PrtryAcct/Id", "Id/BBAN");
  const currency = textAt(element, "Ccy");
  statement.currency = currency === "" ? undefined : currency;
}

function readPeriod(statement: Statement, element: XmlElement): void {
  statement.fromDate = isoDate(textAt(element, "FrDtTm", "FrDt"));
  statement.toDate = isoDate(textAt(element, "ToDtTm", "ToDt"));
}

function named(name: string, statementId: string): string {
  return statementId === "" ? name : `${name} of ${statementId}`;
}
