/** Whether an amount is above a limit, ignoring the signs. Compares decimal strings, because numbers lose digits. */
export function isAbove(amount: string, limit: string): boolean {
  const [a, b] = [partsOf(amount), partsOf(limit)];
  const wholeWidth = Math.max(a.whole.length, b.whole.length);
  const fractionWidth = Math.max(a.fraction.length, b.fraction.length);
  const digits = ({ whole, fraction }: Parts) => whole.padStart(wholeWidth, "0") + fraction.padEnd(fractionWidth, "0");
  return digits(a) > digits(b);
}

interface Parts {
  readonly whole: string;
  readonly fraction: string;
}

function partsOf(amount: string): Parts {
  const [whole = "", fraction = ""] = amount.replace("-", "").split(".");
  return { whole, fraction };
}

export interface Difference {
  readonly field: string;
  readonly expected: string | null;
  readonly found: string | null;
}

/** The currency of each side of a comparison. The issue has the line's currency; the payment may have another one. */
export function currenciesOf(
  differences: readonly Difference[],
  ofIssue: string | null,
): Readonly<Record<"expected" | "found", string | null>> {
  const other = differences.find(({ field }) => field === "currency");
  return { expected: other?.expected ?? ofIssue, found: other?.found ?? ofIssue };
}
