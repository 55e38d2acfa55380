/**
 * The control totals of a statement: opening balance and booked entries must give the closing balance, and the sums that
 * the bank states must be those of the entries.
 */
import { readDecimal } from "../amounts.ts";
import { isoDate } from "../dates.ts";
import type { ControlTotal } from "../format.ts";
import { elementAt, textAt, type XmlElement } from "./element.ts";
import { readMoney, signOf } from "./money.ts";

interface Balance {
  readonly type: string;
  readonly date: string;
  readonly minor: bigint;
  readonly currency: string;
}

/** Balances booked: opening, previous closing, closing and interim. Available and forward balances have no entries of their own. */
const BOOKED = new Set(["OPBD", "PRCD", "CLBD", "ITBD"]);

/** The balance, or the reason why it cannot be read; undefined when it is of another type. */
export function readBalance(element: XmlElement): Balance | undefined | { readonly reason: string } {
  const type = textAt(element, "Tp/CdOrPrtry/Cd", "Tp/Cd");
  if (!BOOKED.has(type)) return undefined;
  const amount = readMoney(elementAt(element, "Amt"));
  if ("reason" in amount) return { reason: `The balance ${type} cannot be read: ${amount.reason}` };
  const sign = signOf(textAt(element, "CdtDbtInd"));
  if (sign === undefined) return { reason: `The balance ${type} has no CdtDbtInd that is CRDT or DBIT.` };
  const date = isoDate(textAt(element, "Dt/Dt", "Dt/DtTm")) ?? "";
  return { type, date, minor: sign * amount.minor, currency: amount.currency };
}

/** The sums of the entries of a statement, by currency. */
export class EntrySums {
  readonly booked = new Map<string, bigint>();
  readonly credits = new Map<string, bigint>();
  readonly debits = new Map<string, bigint>();

  add(amountMinor: bigint, currency: string, isBooked: boolean): void {
    if (isBooked) increase(this.booked, currency, amountMinor);
    if (amountMinor < 0n) increase(this.debits, currency, -amountMinor);
    else increase(this.credits, currency, amountMinor);
  }

  /** The one currency of all entries. */
  get onlyCurrency(): string | undefined {
    const currencies = new Set([...this.credits.keys(), ...this.debits.keys()]);
    return currencies.size === 1 ? [...currencies][0] : undefined;
  }
}

function increase(sums: Map<string, bigint>, currency: string, minor: bigint): void {
  sums.set(currency, (sums.get(currency) ?? 0n) + minor);
}

export type { Balance };

/**
 * One total for each currency with a closing balance. A closing balance whose opening one is in another currency, and
 * entries in a currency without balances, do not add up, so that a person checks them.
 */
export function balanceTotals(balances: readonly Balance[], sums: EntrySums): readonly ControlTotal[] {
  const ordered = balances.toSorted((a, b) => (a.date < b.date ? -1 : Number(a.date > b.date)));
  const currencies = new Set(ordered.map(({ currency }) => currency));
  const pairs = [...currencies].map((currency) => ({
    currency,
    ...pairOf(ordered.filter((one) => one.currency === currency)),
  }));
  if (!pairs.some(({ opening }) => opening !== undefined) || !pairs.some(({ closing }) => closing !== undefined))
    return [];
  const totals = pairs.map(({ currency, opening, closing }) => ({
    name: "closing balance",
    currency,
    statedMinor: closing?.minor ?? 0n,
    computedMinor: (opening?.minor ?? 0n) + (sums.booked.get(currency) ?? 0n),
  }));
  const others = [...sums.booked].filter(([currency]) => !currencies.has(currency));
  return [
    ...totals,
    ...others.map(([currency, computedMinor]) => ({
      name: "entries in a currency without a balance",
      currency,
      statedMinor: 0n,
      computedMinor,
    })),
  ];
}

/**
 * The first opening and the last closing balance, by date. A page of a longer statement has an
 * interim balance in place of one of them, or of both.
 */
function pairOf(balances: readonly Balance[]): {
  readonly opening: Balance | undefined;
  readonly closing: Balance | undefined;
} {
  const of = (type: string) => balances.filter((balance) => balance.type === type);
  const interim = of("ITBD");
  const opening = of("OPBD")[0] ?? of("PRCD")[0];
  const closing = of("CLBD").at(-1);
  if (opening !== undefined) return { opening, closing: closing ?? interim.at(-1) };
  if (closing !== undefined) return { opening: interim[0], closing };
  return interim.length > 1 ? { opening: interim[0], closing: interim.at(-1) } : { opening, closing };
}

/** The sums that the bank states in `TxsSummry`, which are of all entries, booked or not. */
export function summaryTotals(
  summary: XmlElement | undefined,
  currency: string | undefined,
  sums: EntrySums,
): readonly ControlTotal[] {
  const only = sums.onlyCurrency ?? currency;
  if (summary === undefined || only === undefined || (currency !== undefined && only !== currency)) return [];
  const totals = [
    { name: "sum of the credit entries", path: "TtlCdtNtries/Sum", computedMinor: sums.credits.get(only) ?? 0n },
    { name: "sum of the debit entries", path: "TtlDbtNtries/Sum", computedMinor: sums.debits.get(only) ?? 0n },
  ];
  return totals.flatMap(({ name, path, computedMinor }) => {
    const stated = readDecimal(textAt(summary, path), only);
    return "reason" in stated ? [] : [{ name, currency: only, statedMinor: stated.minor, computedMinor }];
  });
}
