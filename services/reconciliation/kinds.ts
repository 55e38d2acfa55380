/**
 * The kinds of differences that a run raises, and the numbers of its rules. The guide, `docs/reconciliation.md`, has when each
 * kind holds and what a person does about it.
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
