/** Amounts of camt: a decimal with its currency, and an indicator beside it that gives the sign. */
import { readDecimal } from "../amounts.ts";
import { elementAt, elementsAt, textAt, type XmlElement } from "./element.ts";

export interface Money {
  readonly minor: bigint;
  readonly currency: string;
}

type MoneyReading = Money | { readonly reason: string };

/** The amount of an element `Amt`, without a sign: ISO 20022 has none there. */
export function readMoney(amount: XmlElement | undefined): MoneyReading {
  if (amount === undefined || amount.text.trim() === "")
    return { reason: "The amount is missing; it is not taken from elsewhere in the entry." };
  const currency = amount.currency?.trim() ?? "";
  const reading = readDecimal(amount.text, currency);
  if ("reason" in reading) return reading;
  if (reading.minor < 0n) return { reason: "The amount is negative; camt gives the sign in CdtDbtInd." };
  return { minor: reading.minor, currency };
}

/** The amount of the element at a path, where it is there and can be read. */
export function moneyAt(element: XmlElement, path: string): Money | undefined {
  const reading = readMoney(elementAt(element, path));
  return "reason" in reading ? undefined : reading;
}

/** 1n for a credit, -1n for a debit. For a reversal too, this is its effect on the account, so `RvslInd` is not read. */
export function signOf(indicator: string): bigint | undefined {
  if (indicator === "CRDT") return 1n;
  return indicator === "DBIT" ? -1n : undefined;
}

export interface Charge {
  readonly minor: bigint;
  readonly currency: string;
  /** As people read it. */
  readonly words: string;
}

/** Charges, signed as they change the account. Version 02 repeats `Chrgs`, later versions repeat `Rcrd` in it. */
export function chargesOf(element: XmlElement): readonly Charge[] {
  const charges = elementsAt(element, "Chrgs");
  return charges.flatMap((charge) => {
    const records = elementsAt(charge, "Rcrd");
    return (records.length > 0 ? records : [charge]).flatMap(chargeOf);
  });
}

function chargeOf(record: XmlElement): readonly Charge[] {
  const money = moneyAt(record, "Amt");
  if (money === undefined || money.minor === 0n) return [];
  const indicator = textAt(record, "CdtDbtInd");
  const type = textAt(record, "Tp/Cd", "Tp/Prtry/Id", "Tp/Prtry");
  const words = [`${textAt(record, "Amt")} ${money.currency}`, indicator, type].filter((word) => word !== "").join(" ");
  return [{ minor: indicator === "CRDT" ? money.minor : -money.minor, currency: money.currency, words }];
}
