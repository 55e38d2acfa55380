/** Sums that become control totals: of batches and payouts, and of single rows whose own amounts must agree. */
import { type StatementRecord, StatementRefusedError } from "./format.ts";
import { FORMAT_LIMITS } from "./limits.ts";
import { totalRecord } from "./records.ts";

/** Sums by a key of several parts, for example account, batch and currency. */
export class SumsByKey<Part extends string> {
  readonly #sums = new Map<string, { readonly parts: Readonly<Record<Part, string>>; minor: bigint }>();

  /** Whether the key is new. Throws `StatementRefusedError` when there are too many. */
  add(parts: Readonly<Record<Part, string>>, minor: bigint): boolean {
    const key = keyOf(parts);
    const known = this.#sums.get(key);
    if (known !== undefined) {
      known.minor += minor;
      return false;
    }
    if (this.#sums.size >= FORMAT_LIMITS.controlGroups) throw tooMany();
    this.#sums.set(key, { parts, minor });
    return true;
  }

  get(parts: Readonly<Record<Part, string>>): bigint | undefined {
    return this.#sums.get(keyOf(parts))?.minor;
  }

  *entries(): Generator<readonly [parts: Readonly<Record<Part, string>>, minor: bigint]> {
    for (const { parts, minor } of this.#sums.values()) yield [parts, minor];
  }
}

function keyOf(parts: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.values(parts));
}

function tooMany(): StatementRefusedError {
  const sentence = `The file has more than ${FORMAT_LIMITS.controlGroups} batches, payouts or currencies; divide it and import the parts.`;
  return new StatementRefusedError("too_large", sentence);
}

interface RowAmounts {
  readonly position: number;
  readonly currency: string;
  readonly grossMinor: bigint;
  /** As it changes the balance. */
  readonly feeMinor: bigint;
  readonly netMinor: bigint;
}

/** Checks that gross and fee make the net of each row. Only rows where they do not become totals, so that the file is held. */
export class RowCheck {
  #broken = 0;

  *check({ position, currency, grossMinor, feeMinor, netMinor }: RowAmounts): Generator<StatementRecord> {
    if (grossMinor + feeMinor === netMinor || this.#broken >= FORMAT_LIMITS.rowTotals) return;
    this.#broken += 1;
    const name = `gross less fees of line ${position}`;
    yield totalRecord({ name, currency, statedMinor: netMinor, computedMinor: grossMinor + feeMinor });
  }
}
