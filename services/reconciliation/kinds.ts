/**
 * The rules of a run, as data and pure functions: which difference a line or a payment has, when, and what a person does
 * about it. The SQL of a run is tested against them.
 */
import type { IssueKind } from "../bus/messages/issues.ts";

/**
 * What a run can raise. The order is that in which a line is judged: the first condition that holds names the difference.
 * A run raises `after_closing` in addition to it.
 */
export const RUN_KINDS = [
  "refund_not_registered",
  "chargeback_not_registered",
  "batch_total_mismatch",
  "late_money",
  "wrong_station",
  "date_out_of_window",
  "fee_mismatch",
  "duplicate_in_statement",
  "currency_mismatch",
  "direction_mismatch",
  "tip",
  "rounding",
  "amount_over",
  "amount_under",
  "possible_duplicate",
  "reference_mismatch",
  "ambiguous_match",
  "unmatched_money",
  "status_mismatch",
  "missing_in_statement",
  "malformed_line",
  "after_closing",
] as const satisfies readonly IssueKind[];
export type RunKind = (typeof RUN_KINDS)[number];

/** Kinds of a line that has no certain payment: which of them it is changes with what is imported beside it. */
export const UNCERTAIN_KINDS = [
  "possible_duplicate",
  "reference_mismatch",
  "ambiguous_match",
  "unmatched_money",
] as const satisfies readonly RunKind[];

interface KindRule {
  /** What the issue is about: every later run identifies the issue by it. */
  readonly subject: "line" | "payment" | "money" | "row" | "closing";
  readonly condition: string;
  readonly nextStep: string;
}

/** For people and for the documentation. "Its payment" is one that has the same reference. */
export const KIND_RULES: Readonly<Record<RunKind, KindRule>> = {
  refund_not_registered: {
    subject: "line",
    condition: "The line is a refund or its reversal; refunds are not registered at stations.",
    nextStep: "Check who has refunded it, and close it with the reason.",
  },
  chargeback_not_registered: {
    subject: "line",
    condition: "The line is a chargeback or its reversal.",
    nextStep: "Answer the provider within its time limit, and close it with the outcome.",
  },
  batch_total_mismatch: {
    subject: "line",
    condition: "The lines of a payout add up to another amount than the payout.",
    nextStep: "Import the statements that are missing, or ask the provider.",
  },
  late_money: {
    subject: "money",
    condition: "A device reported this payment after its collection had ended, and no order was paid with it.",
    nextStep: "Attribute the money to its order, or pay it back.",
  },
  wrong_station: {
    subject: "line",
    condition:
      "Its payment was settled at a station of another filial, or at another station than the terminal's payments.",
    nextStep: "Check which station has collected, and which terminal it has used.",
  },
  date_out_of_window: {
    subject: "line",
    condition: "Its payment was settled too many days earlier, or after the line was booked.",
    nextStep: "Check that both are the same payment, and confirm the match.",
  },
  fee_mismatch: {
    subject: "line",
    condition: "Its payment fits, but gross and fee do not add up to the net amount.",
    nextStep: "Ask the provider for the correct fee.",
  },
  duplicate_in_statement: {
    subject: "line",
    condition: "Its payment is matched with another line already.",
    nextStep: "Pay the second charge back to the guest.",
  },
  currency_mismatch: {
    subject: "line",
    condition: "Its payment was settled in another currency.",
    nextStep: "Check the terminal's currency, and whether the amount was converted.",
  },
  direction_mismatch: {
    subject: "line",
    condition: "Its payment has the opposite sign.",
    nextStep: "Check whether the terminal has refunded the payment.",
  },
  tip: {
    subject: "line",
    condition: "Its payment is smaller by exactly the tip that the statement names.",
    nextStep: "Pass the tip on, and close it.",
  },
  rounding: {
    subject: "line",
    condition: "The line is its payment's amount rounded to the smallest coin of the currency.",
    nextStep: "Close it.",
  },
  amount_over: {
    subject: "line",
    condition: "The line is more than its payment.",
    nextStep: "Pay the difference back, or close it with the reason.",
  },
  amount_under: {
    subject: "line",
    condition: "The line is less than its payment.",
    nextStep: "Collect the difference, or close it with the reason.",
  },
  possible_duplicate: {
    subject: "line",
    condition:
      "The line has no reference of the provider, and files that overlap have different numbers of equal rows.",
    nextStep: "Check whether these are one payment or several.",
  },
  reference_mismatch: {
    subject: "line",
    condition:
      "No payment has its reference; exactly one payment, or one group of payouts or credits by its exact sum, is the best candidate.",
    nextStep: "Confirm or reject the candidate.",
  },
  ambiguous_match: {
    subject: "line",
    condition: "Several payments fit equally well, or several lines fit one payment.",
    nextStep: "Choose the payment, or reject the candidates.",
  },
  unmatched_money: {
    subject: "money",
    condition: "No payment fits the line.",
    nextStep: "Attribute the money to an open order, or pay it back.",
  },
  status_mismatch: {
    subject: "payment",
    condition:
      "The payment is settled here by card or by QR; the statement has it as failed, cancelled, pending or cash.",
    nextStep: "Check the terminal's slip: the guest may not have paid.",
  },
  missing_in_statement: {
    subject: "payment",
    condition: "The statement should have shown the payment, or the payout, by now, and does not.",
    nextStep: "Import the statements that are missing, or ask the provider for the payment.",
  },
  malformed_line: {
    subject: "row",
    condition: "A row of an imported file could not be read, or contradicts a line that another file has.",
    nextStep: "Read the row and its reason; withdraw the file and import a corrected one, or close it.",
  },
  after_closing: {
    subject: "closing",
    condition:
      "A line of a closed period came after its closing, or a difference of its days is new or has other evidence.",
    nextStep: "Decide the difference itself, and close this with what the books of the period do about it.",
  },
};

/** Why a line is neither matched nor a difference. */
export const REJECTION_RULES = {
  not_money: "The row failed, was cancelled, is pending or is for information: no money has moved.",
  planned_payout: "The payout is announced; its money has not moved yet.",
  fee: "The provider's price; the payments it belongs to are compared by their gross amounts.",
  adjustment: "A booking of the provider between itself and the account.",
  conversion: "One side of an exchange of currencies.",
  payout_without_lines: "The payout names no payments, as manual and instant payouts do.",
  payout_converted:
    "The payout has paid out lines of other currencies; the totals of its file were checked at the import.",
  payout_reversal: "A payout that came back to the provider's account.",
  cash_not_compared: "A cash row without the reference of a payment; cash is counted in the drawer.",
  bank_debit: "Money that left the bank account; stations only collect.",
} as const;

/** Minor units of the smallest coin, for currencies in which it is more than one minor unit. */
export const SMALLEST_COIN: Readonly<Record<string, number>> = {
  CHF: 5,
  AUD: 5,
  CAD: 5,
  NZD: 10,
  DKK: 50,
  NOK: 100,
  SEK: 100,
  CZK: 100,
  HUF: 500,
};

export interface ComparedAmounts {
  readonly lineMinor: bigint;
  readonly lineCurrency: string;
  readonly tipMinor: bigint | undefined;
  readonly paymentMinor: bigint;
  readonly paymentCurrency: string;
}

/** How the amounts of a line and a payment with the same reference differ; undefined when they are equal. */
export function amountDifference(pair: ComparedAmounts): RunKind | undefined {
  const { lineMinor, paymentMinor, tipMinor, lineCurrency, paymentCurrency } = pair;
  if (lineCurrency !== paymentCurrency) return "currency_mismatch";
  if (lineMinor === paymentMinor) return undefined;
  if (lineMinor < 0n) return "direction_mismatch";
  if (tipMinor !== undefined && tipMinor > 0n && lineMinor === paymentMinor + tipMinor) return "tip";
  if (lineMinor === roundedToCoin(paymentMinor, paymentCurrency)) return "rounding";
  return lineMinor > paymentMinor ? "amount_over" : "amount_under";
}

/** Half of a coin rounds up. */
export function roundedToCoin(amountMinor: bigint, currency: string): bigint {
  const coin = BigInt(SMALLEST_COIN[currency] ?? 1);
  return ((amountMinor + coin / 2n) / coin) * coin;
}

/** The score of a candidate without a common reference: the points of each agreement, 100 in total. */
export const SCORE = {
  parts: {
    /** Amount and currency are equal: without it there is no candidate. */
    amount: 40,
    /** On the same day. */
    date: 20,
    /** At most `nearMinutes` apart; half of it at most `sameHourMinutes` apart. */
    time: 16,
    /** The line's terminal is the one of the payment's station. */
    terminal: 10,
    /** The line's text, details or references contain the payment's reference: a cashier may type a part of it. */
    reference: 14,
  },
  /** The points of `date` that each day apart costs. */
  day: 4,
  /** A cashier attests within minutes after the guest has paid. */
  nearMinutes: 10,
  sameHourMinutes: 60,
} as const;

/** The score of a candidate that has the line's reference. */
export const FULL_SCORE = 100;

export interface CandidateFacts {
  readonly daysApart: number;
  /** Undefined where the statement gives no time. */
  readonly minutesApart: number | undefined;
  readonly isTerminalOfStation: boolean;
  readonly isReferenceInText: boolean;
}

export function scoreOf({
  daysApart,
  minutesApart = Number.POSITIVE_INFINITY,
  ...facts
}: CandidateFacts): Readonly<Record<keyof typeof SCORE.parts, number>> {
  const { parts, day, nearMinutes, sameHourMinutes } = SCORE;
  return {
    amount: parts.amount,
    date: Math.max(0, parts.date - day * daysApart),
    time: minutesApart <= nearMinutes ? parts.time : minutesApart <= sameHourMinutes ? parts.time / 2 : 0,
    terminal: facts.isTerminalOfStation ? parts.terminal : 0,
    reference: facts.isReferenceInText ? parts.reference : 0,
  };
}
