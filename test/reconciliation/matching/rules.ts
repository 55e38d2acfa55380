/** The rules of a run as pure functions, written independently of its SQL, which the tests compare with them. */
import { type RunKind, SCORE, SMALLEST_COIN } from "../../../services/reconciliation/kinds.ts";

interface ComparedAmounts {
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

interface CandidateFacts {
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
