/**
 * One entry (`Ntry`) as lines: one line, or one for each transaction of a booked batch, when their amounts add up exactly to
 * the entry's. The entry's own amount is what the bank booked: where it is missing the entry is malformed, whatever is
 * written in its transactions.
 */
import { isoDate, isoInstant } from "../dates.ts";
import { NOT_MONEY_REASON } from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import type { LineFields } from "../records.ts";
import { type BankTransactionCode, bankTransactionCode, kindOf } from "./bank-transaction-codes.ts";
import { elementAt, textAt, type XmlElement } from "./element.ts";
import { type Charge, chargesOf, moneyAt, readMoney, signOf } from "./money.ts";
import { amountDetailsOf, type Details, referenceAt, type Transaction } from "./transaction.ts";

/** A line without its position. */
type Line = Omit<LineFields, "position">;

interface Entry {
  readonly amountMinor: bigint;
  readonly currency: string;
  /** Whether it is in the booked balance: not when it is pending or for information. */
  readonly isBooked: boolean;
  readonly lines: readonly Line[];
}

type EntryReading = Entry | { readonly column: string; readonly reason: string };

/** The common parts of the entry's lines. */
interface EntryHead {
  readonly amountMinor: bigint;
  readonly currency: string;
  /** The status of an entry that is not booked. */
  readonly notBooked: string | undefined;
  readonly bookedOn: string;
  readonly valueOn: string | undefined;
  readonly occurredAt: string | undefined;
  readonly account: string;
  readonly code: BankTransactionCode;
  readonly charges: readonly Charge[];
  readonly reference: string;
  readonly batchReference: string;
  readonly element: XmlElement;
}

/** What an entry takes from its statement. */
interface EntryStatement {
  readonly account: string;
  /** The day on which the bank made the statement. */
  readonly createdOn: string | undefined;
}

/** External code set "entry status": an entry that is not booked has moved no money, or not yet. */
const NOT_BOOKED = new Set(["PDNG", "INFO", "FUTR"]);

export function readEntry(
  element: XmlElement,
  transactions: readonly Transaction[],
  statement: EntryStatement,
  ordinal: number,
): EntryReading {
  const head = readHead(element, statement);
  if ("reason" in head) return head;
  const isBooked = head.notBooked === undefined;
  const lines =
    isBooked && isSplit(head, transactions) ? splitLines(head, transactions, ordinal) : [wholeLine(head, transactions)];
  return { amountMinor: head.amountMinor, currency: head.currency, isBooked, lines };
}

function readHead(
  element: XmlElement,
  { account, createdOn }: EntryStatement,
): EntryHead | { readonly column: string; readonly reason: string } {
  const amount = readMoney(elementAt(element, "Amt"));
  if ("reason" in amount) return { column: "Amt", reason: amount.reason };
  const sign = signOf(textAt(element, "CdtDbtInd"));
  if (sign === undefined) return { column: "CdtDbtInd", reason: "CdtDbtInd is neither CRDT nor DBIT." };
  const status = textAt(element, "Sts/Cd", "Sts");
  if (status !== "BOOK" && !NOT_BOOKED.has(status))
    return { column: "Sts", reason: "The status is none of BOOK, PDNG, INFO and FUTR." };
  const notBooked = status === "BOOK" ? undefined : status;
  // The day of the statement is not taken for the day of a movement.
  const dates = readDates(element, notBooked === undefined ? undefined : createdOn);
  if ("reason" in dates) return dates;
  return {
    amountMinor: sign * amount.minor,
    currency: amount.currency,
    notBooked,
    ...dates,
    account,
    code: bankTransactionCode(element),
    charges: chargesOf(element),
    reference: referenceAt(element, "AcctSvcrRef"),
    batchReference: referenceAt(element, "NtryDtls/Btch/PmtInfId", "NtryDtls/Btch/MsgId"),
    element,
  };
}

type Dates = Pick<EntryHead, "bookedOn" | "valueOn" | "occurredAt">;

/** A pending entry has no booking date: its value date counts, else the day of its statement. */
function readDates(
  element: XmlElement,
  statementDay: string | undefined,
): Dates | { readonly column: string; readonly reason: string } {
  const booked = textAt(element, "BookgDt/Dt", "BookgDt/DtTm");
  const value = textAt(element, "ValDt/Dt", "ValDt/DtTm");
  const bookedOn = isoDate(booked);
  const valueOn = isoDate(value);
  if (booked !== "" && bookedOn === undefined) return { column: "BookgDt", reason: "The date is not in the calendar." };
  if (value !== "" && valueOn === undefined) return { column: "ValDt", reason: "The date is not in the calendar." };
  const date = bookedOn ?? valueOn ?? statementDay;
  if (date === undefined)
    return { column: "BookgDt", reason: "The entry has neither a booking date nor a value date." };
  return { bookedOn: date, valueOn, occurredAt: isoInstant(booked) };
}

/** A batch is split only when every transaction has an amount in the entry's currency and nothing is left over. */
function isSplit(head: EntryHead, transactions: readonly Transaction[]): boolean {
  if (transactions.length < 2) return false;
  const amounts = transactions.map((transaction) => signedAmount(head, transaction));
  if (amounts.includes(undefined)) return false;
  return amounts.reduce<bigint>((sum, amount) => sum + (amount ?? 0n), 0n) === head.amountMinor;
}

function signedAmount(head: EntryHead, { amount, indicator }: Transaction): bigint | undefined {
  if (amount === undefined || amount.currency !== head.currency) return undefined;
  const sign = indicator === "" ? signOfAmount(head.amountMinor) : signOf(indicator);
  return sign === undefined ? undefined : sign * amount.minor;
}

function signOfAmount(amountMinor: bigint): bigint {
  return amountMinor < 0n ? -1n : 1n;
}

function splitLines(head: EntryHead, transactions: readonly Transaction[], ordinal: number): readonly Line[] {
  const references = ownReferences(head, transactions);
  const batch = [head.reference, head.batchReference, textAt(head.element, "NtryRef")].find(
    (reference) => reference !== "",
  );
  return transactions.map((transaction, index) => {
    const code = transaction.code.code === "" ? head.code : transaction.code;
    return lineOf(head, code, signedAmount(head, transaction) ?? 0n, {
      transaction,
      providerReference: references[index] ?? "",
      payoutReference: batch ?? "",
      details: [
        ["Ntry", `${ordinal}`],
        ["NtryDtls", `${index + 1} of ${transactions.length}`],
      ],
    });
  });
}

/** The bank's id of each transaction: the first that is not the entry's and that no other transaction has; else none. */
function ownReferences(head: EntryHead, transactions: readonly Transaction[]): readonly string[] {
  const uses = new Map<string, number>();
  for (const { bankReferences } of transactions)
    for (const reference of new Set(bankReferences)) uses.set(reference, (uses.get(reference) ?? 0) + 1);
  return transactions.map(
    ({ bankReferences }) =>
      bankReferences.find((reference) => reference !== head.reference && uses.get(reference) === 1) ?? "",
  );
}

function wholeLine(head: EntryHead, transactions: readonly Transaction[]): Line {
  const transaction = transactions.length === 1 ? transactions[0] : undefined;
  const code = head.code.code === "" ? (transaction?.code ?? head.code) : head.code;
  return lineOf(head, code, head.amountMinor, {
    transaction,
    providerReference: head.reference === "" ? (transaction?.bankReferences[0] ?? "") : head.reference,
    payoutReference: head.batchReference,
    details: transactions.length > 1 ? [["NtryDtls", `${transactions.length}, not split into lines`]] : [],
  });
}

interface LineParts {
  readonly transaction: Transaction | undefined;
  readonly providerReference: string;
  readonly payoutReference: string;
  readonly details: Details;
}

function lineOf(head: EntryHead, code: BankTransactionCode, amountMinor: bigint, parts: LineParts): Line {
  const { transaction } = parts;
  const entryText = textAt(head.element, "AddtlNtryInf");
  const text = transaction === undefined || transaction.text === "" ? entryText : transaction.text;
  const merchantReference = merchantReferenceOf(transaction, amountMinor);
  return {
    kind: isMoney(head, amountMinor) ? kindOf(code, amountMinor) : "not_money",
    ...grossAndFee(head, transaction, amountMinor),
    providerType: code.code,
    currency: head.currency,
    bookedOn: head.bookedOn,
    valueOn: head.valueOn,
    occurredAt: transaction?.occurredAt ?? head.occurredAt,
    providerReference: parts.providerReference,
    merchantReference,
    payoutReference: parts.payoutReference,
    terminal: transaction?.terminal,
    account: head.account,
    text,
    details: [
      ...notMoneyDetails(head, amountMinor),
      ...parts.details,
      ...entryDetails(head, code, text === entryText ? "" : entryText),
      ...(transaction?.details.filter(
        ([, value]) => !isShown(value, merchantReference, parts.providerReference, text),
      ) ?? []),
    ],
  };
}

function isShown(value: string, ...shown: readonly string[]): boolean {
  return shown.includes(value);
}

function isMoney({ notBooked }: EntryHead, amountMinor: bigint): boolean {
  return notBooked === undefined && amountMinor !== 0n;
}

function notMoneyDetails(head: EntryHead, amountMinor: bigint): Details {
  if (head.notBooked !== undefined) return [[NOT_MONEY_REASON, head.notBooked]];
  return amountMinor === 0n ? [[NOT_MONEY_REASON, "zero amount"]] : [];
}

/**
 * The gross and the bank's charges, where the statement states both and they lead exactly to what was booked. Otherwise
 * the amount booked is the line's amount, and the charges are in its details.
 */
function grossAndFee(head: EntryHead, transaction: Transaction | undefined, amountMinor: bigint) {
  const none = { amountMinor, feeMinor: undefined, netMinor: undefined };
  const isWhole = amountMinor === head.amountMinor;
  const charges = isWhole && head.charges.length > 0 ? head.charges : (transaction?.charges ?? []);
  const gross = transaction?.gross ?? (isWhole ? moneyAt(head.element, "AmtDtls/TxAmt/Amt") : undefined);
  if (gross?.currency !== head.currency || charges.some(({ currency }) => currency !== head.currency)) return none;
  const feeMinor = charges.reduce((sum, { minor }) => sum + minor, 0n);
  const grossMinor = signOfAmount(amountMinor) * gross.minor;
  if (feeMinor === 0n || grossMinor + feeMinor !== amountMinor) return none;
  return { amountMinor: grossMinor, feeMinor, netMinor: amountMinor };
}

/** For a credit with exactly one creditor reference: that reference, which the payer repeated. Otherwise the end-to-end id. */
function merchantReferenceOf(transaction: Transaction | undefined, amountMinor: bigint): string {
  if (transaction === undefined) return "";
  const [reference, another] = transaction.creditorReferences;
  if (amountMinor > 0n && reference !== undefined && another === undefined) return reference;
  return transaction.endToEndId;
}

function entryDetails({ element }: EntryHead, code: BankTransactionCode, text: string): Details {
  const named = ["NtryRef", "RvslInd", "ComssnWvrInd"].map((name) => [name, textAt(element, name)] as const);
  return [
    ...named.filter(([, value]) => value !== "false"),
    ["BkTxCd/Prtry", code.proprietary],
    ["Btch/NbOfTxs", textAt(element, "NtryDtls/Btch/NbOfTxs")],
    ...amountDetailsOf(element),
    ["AddtlNtryInf", text],
  ];
}

/** Why an entry that is too large for memory is no line. */
export const TOO_LARGE = `The entry has more than ${FORMAT_LIMITS.entryTransactions} transactions or ${FORMAT_LIMITS.entryCharacters} characters.`;
