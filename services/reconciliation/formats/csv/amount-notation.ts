/**
 * Whether the amounts of a file have a decimal point or a decimal comma. Neither the language nor the country of a report says
 * it, so the first amount decides that can be read in one way only: "11,50" and "1.234,5" can, "1.234" cannot.
 */
import type { DecimalNotation } from "../amounts.ts";

type Separator = DecimalNotation["decimalSeparator"];

interface NotationRules {
  /** Without groups of thousands each separator is the decimal one. */
  readonly grouped: boolean;
  /** The decimal separator until an amount decides. */
  readonly usual?: Separator;
}

export class AmountNotation {
  readonly #rules: NotationRules;
  #separator: Separator | undefined;

  constructor(rules: NotationRules) {
    this.#rules = rules;
  }

  /** Undefined when the amount can be read in two ways, and neither an amount before it nor the rules say which one is meant. */
  of(text: string): DecimalNotation | undefined {
    const { grouped, usual } = this.#rules;
    this.#separator ??= grouped ? shownSeparator(text) : onlySeparator(text);
    const decimalSeparator = this.#separator ?? usual;
    if (decimalSeparator !== undefined) return { decimalSeparator, grouped };
    return /[.,]/.test(text) ? undefined : { decimalSeparator: ".", grouped: false };
  }
}

function shownSeparator(text: string): Separator | undefined {
  const separators = text.replaceAll(/[^.,]/g, "");
  const last = separators.at(-1);
  if (last !== "." && last !== ",") return undefined;
  const other = last === "." ? "," : ".";
  const decimals = text.length - 1 - text.lastIndexOf(last);
  if (separators.length === 1) return decimals === 3 && !/^[-+]?0\D/.test(text) ? undefined : last;
  // The last separator occurs twice: it groups thousands, so the other one is the decimal separator.
  return separators.includes(other) ? last : other;
}

function onlySeparator(text: string): Separator | undefined {
  const [separator, ...others] = text.replaceAll(/[^.,]/g, "");
  return others.length === 0 && (separator === "." || separator === ",") ? separator : undefined;
}
