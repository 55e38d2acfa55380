/**
 * The result of every parser of a statement file: the same records, whatever the provider. A parser is pure: it has no
 * database, no bus and no clock, and its memory is bounded by one record.
 */
import type { LineKind, StatementRefusal } from "../../bus/messages/statement-formats.ts";
import type { CsvMapping } from "./csv/mapping.ts";

export { LINE_KINDS, type LineKind } from "../../bus/messages/statement-formats.ts";

/** The key of `details` under which a line of the kind `not_money` states its reason, in the provider's word where it has one. */
export const NOT_MONEY_REASON = "not_money_reason";

export interface StatementLine {
  /** The position in the file, from 1: the physical line of its first character for text, the ordinal of the entry for XML. */
  readonly position: number;
  readonly kind: LineKind;
  /** The provider's word for it ("Settled", "charge", "T0006", "NTRF"). */
  readonly providerType: string;
  /** Signed minor units of `currency`; the gross. */
  readonly amountMinor: bigint;
  readonly currency: string;
  /** Signed as it changes the merchant's balance: a fee is negative. Undefined where the statement has none. */
  readonly feeMinor: bigint | undefined;
  readonly netMinor: bigint | undefined;
  /** Part of `amountMinor`, not on top of it. */
  readonly tipMinor: bigint | undefined;
  /** `YYYY-MM-DD` as the statement has it. */
  readonly bookedOn: string;
  readonly valueOn: string | undefined;
  /**
   * ISO 8601 with an offset or Z where the statement gives an instant, undefined where it does not. A local time without
   * a zone is never turned into an instant by a guess.
   */
  readonly occurredAt: string | undefined;
  /** The provider's id of this movement, verbatim; "" where there is none (NONREF is none). With `providerType` it identifies the line. */
  readonly providerReference: string;
  /** The provider's id of the payment that a refund, fee, chargeback or modification belongs to; "" where there is none. */
  readonly paymentReference: string;
  /** The merchant's reference that came back: order or intent reference, EndToEndId; "" where there is none. */
  readonly merchantReference: string;
  /** The payout or settlement batch that contains it; "" where there is none. */
  readonly payoutReference: string;
  /** Terminal, store or device as the statement names it; "" where there is none. */
  readonly terminal: string;
  /** The provider account or IBAN that the line names; "" where the file as a whole is of one account. */
  readonly account: string;
  /** Free text, verbatim, at most `FORMAT_LIMITS.textCharacters`. */
  readonly text: string;
  /** Every field of the source that the operator may want to see and that is in no other field; bounded. */
  readonly details: Readonly<Record<string, string>>;
}

/** A row that is no line; the rows after it are parsed all the same. */
export interface MalformedLine {
  readonly position: number;
  /** The column's or element's name as in the file. */
  readonly column: string;
  /** One sentence. */
  readonly reason: string;
  /** The raw text, at most `FORMAT_LIMITS.rawCharacters`. */
  readonly raw: string;
}

/** A sum that the statement states itself, or that must be zero, beside what the lines add up to. */
export interface ControlTotal {
  readonly name: string;
  readonly currency: string;
  readonly statedMinor: bigint;
  readonly computedMinor: bigint;
}

/** What the header of a statement states about the whole: one for each `Stmt`, section or batch. */
export interface StatementHeader {
  readonly account: string;
  readonly currency: string | undefined;
  readonly fromDate: string | undefined;
  readonly toDate: string | undefined;
}

export type StatementRecord =
  | { readonly type: "header"; readonly header: StatementHeader }
  | { readonly type: "line"; readonly line: StatementLine }
  | { readonly type: "malformed"; readonly malformed: MalformedLine }
  | { readonly type: "total"; readonly total: ControlTotal }
  /**
   * What follows is another file that was appended to the first, or a statement that the file repeats. It counts as a separate
   * file: a line that it shares with an earlier part is stored once.
   */
  | { readonly type: "next_file" };

/** The whole file is refused: nothing of it is imported. `code` is for programs, the message is one sentence with the next step. */
export class StatementRefusedError extends Error {
  override readonly name = "StatementRefusedError";
  readonly code: StatementRefusal;

  constructor(code: StatementRefusal, sentence: string) {
    super(sentence);
    this.code = code;
  }
}

/** How long a provider's references stay unique. "ever": an id that the provider gives once, whatever else the row has. */
export type ReferenceScope = "ever" | "year" | "day";

export interface StatementFormat {
  /**
   * "sumup", "adyen_settlement_details", "stripe_payout_reconciliation", "stripe_activity", "paypal_stl", "paypal_trr",
   * "paypal_activity", "camt.053", "camt.054", "mt940", "sandbox" or "csv".
   */
  readonly name: string;
  /** Grows when the rules that give a line its fields or its identity change; it is stored with the import. */
  readonly version: number;
  /** For people. */
  readonly title: string;
  /** How long the provider's references stay unique; "year" when left out. Some banks restart their numbers each day. */
  readonly referenceScope?: ReferenceScope;
  /**
   * Says whether the head, `FORMAT_LIMITS.headCharacters` of decoded text, is certainly of this format. What is detected
   * is offered to a person, and is never applied without one.
   */
  detect(head: string): boolean;
  /**
   * Streams; its memory is bounded by one record. Throws only `StatementRefusedError`. A bad row is a `malformed` record,
   * and the rest is parsed.
   */
  parse(text: AsyncIterable<string>, options: ParseOptions): AsyncIterable<StatementRecord>;
}

export interface ParseOptions {
  /** For csv only. */
  readonly mapping: CsvMapping | undefined;
  /** The time zone that the operator declared for local times, an IANA name; without it `occurredAt` stays undefined for local times. */
  readonly timeZone: string | undefined;
  /** The account's currency, for a statement that names none; without it such a statement is refused. */
  readonly currency?: string | undefined;
}
