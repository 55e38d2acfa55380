/** Compares the account of a statement with the account that a person named: formats write one account in different ways. */
import { currencyCode } from "./formats/amounts.ts";

/**
 * Ignores letter case and spaces, because people write an IBAN in groups. MT940 may put the bank before the account number
 * and the currency after it. Where both accounts have a bank or a currency, these must be equal. In Germany, MT940 has the
 * bank code and the account number, which are the IBAN without its first four characters.
 */
export function isSameAccount(one: string, other: string): boolean {
  const [first, second] = [partsOf(one), partsOf(other)];
  return (
    first.number === second.number &&
    areCompatible(first.bank, second.bank) &&
    areCompatible(first.currency, second.currency)
  );
}

interface AccountParts {
  readonly bank: string | undefined;
  readonly number: string;
  readonly currency: string | undefined;
}

/** For example "INGBNL2A/NL68INGB0000012345EUR". The bank and the currency are optional. */
const PARTS =
  /^(?:(?<bank>[A-Z]{6}[A-Z\d]{2}(?:[A-Z\d]{3})?)\/)?(?<number>[A-Z]{2}\d{2}[A-Z\d]{8,30}?|\d[\d./-]*?\d)(?:\/?(?<currency>[A-Z]{3}))?$/;
const GERMAN_IBAN = /^DE\d\d(\d{18})$/;
const GERMAN_NUMBER = /^(\d{8})\/(\d{1,10})$/;

function partsOf(account: string): AccountParts {
  const text = account.replaceAll(/\s/g, "").toUpperCase();
  const { bank, number, currency } = PARTS.exec(text)?.groups ?? {};
  const isCurrencyValid = currency === undefined || currencyCode(currency) !== undefined;
  if (number === undefined || !isCurrencyValid) return { bank: undefined, number: text, currency: undefined };
  return { bank, number: germanNumber(number), currency };
}

function germanNumber(number: string): string {
  const [, bankCode, accountNumber = ""] = GERMAN_NUMBER.exec(number) ?? [];
  return bankCode === undefined ? number.replace(GERMAN_IBAN, "$1") : bankCode + accountNumber.padStart(10, "0");
}

/** An absent part matches every part. */
function areCompatible(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}
