/** Whether a statement is of the account that a person has named: formats write one account in different ways. */
import { currencyCode } from "./formats/amounts.ts";

/**
 * Letter case and spaces do not count: an IBAN is written in groups. MT940 may have the currency behind the account, and in
 * Germany the bank code and the number, which are the IBAN without its first four characters.
 */
export function isSameAccount(one: string, other: string): boolean {
  const [first, second] = [comparable(one), comparable(other)];
  // Not both without their currencies: a bank may write two accounts alike but for these.
  return first === second || withoutCurrency(first) === second || first === withoutCurrency(second);
}

function comparable(account: string): string {
  const text = account.replaceAll(/\s/g, "").toUpperCase();
  const { bank, number, currency = "" } = BANK_AND_NUMBER.exec(text)?.groups ?? {};
  if (bank !== undefined && number !== undefined) return `${GERMAN}${bank}${number.padStart(10, "0")}${currency}`;
  return text.replace(GERMAN_IBAN, GERMAN);
}
const BANK_AND_NUMBER = /^(?<bank>\d{8})\/(?<number>\d{1,10})(?<currency>[A-Z]{3})?$/;
const GERMAN_IBAN = /^DE\d\d(?=\d{18}(?:[A-Z]{3})?$)/;
const GERMAN = "DE:";

function withoutCurrency(account: string): string {
  const [, number, currency] = /^(.*\d)([A-Z]{3})$/.exec(account) ?? [];
  return number !== undefined && currency !== undefined && currencyCode(currency) !== undefined ? number : account;
}
