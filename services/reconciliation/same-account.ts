/** Whether a statement is of the account that a person has named: formats write one account in different ways. */
import { currencyCode } from "./formats/amounts.ts";

/**
 * Letter case and spaces do not count: an IBAN is written in groups. MT940 may have the bank before the account or the currency
 * behind it; where both names have one, it is the same. In Germany it has the bank code and the number, which are the IBAN
 * without its first four characters.
 */
export function isSameAccount(one: string, other: string): boolean {
  const [first, second] = [partsOf(one), partsOf(other)];
  return (
    first.number === second.number && isEither(first.bank, second.bank) && isEither(first.currency, second.currency)
  );
}

interface AccountParts {
  readonly bank: string | undefined;
  readonly number: string;
  readonly currency: string | undefined;
}

/** "INGBNL2A/NL68INGB0000012345EUR", each part but the number only where it is there. */
const PARTS =
  /^(?:(?<bank>[A-Z]{6}[A-Z\d]{2}(?:[A-Z\d]{3})?)\/)?(?<number>[A-Z]{2}\d{2}[A-Z\d]{8,30}?|\d[\d./-]*?\d)(?:\/?(?<currency>[A-Z]{3}))?$/;
const GERMAN_IBAN = /^DE\d\d(\d{18})$/;
const GERMAN_NUMBER = /^(\d{8})\/(\d{1,10})$/;

function partsOf(account: string): AccountParts {
  const text = account.replaceAll(/\s/g, "").toUpperCase();
  const { bank, number, currency } = PARTS.exec(text)?.groups ?? {};
  const isWhole = currency === undefined || currencyCode(currency) !== undefined;
  if (number === undefined || !isWhole) return { bank: undefined, number: text, currency: undefined };
  return { bank, number: germanNumber(number), currency };
}

function germanNumber(number: string): string {
  const [, code, own = ""] = GERMAN_NUMBER.exec(number) ?? [];
  return code === undefined ? number.replace(GERMAN_IBAN, "$1") : code + own.padStart(10, "0");
}

function isEither(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}
