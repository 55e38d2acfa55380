import { expect, test } from "vitest";
import { isSameAccount } from "../../services/reconciliation/same-account.ts";

test.each([
  ["DE89 3704 0044 0532 0130 00", "de89370400440532013000", true],
  ["NL68INGB0000012345EUR", "NL68INGB0000012345", true],
  ["NL84RABO01212121212 EUR", "NL84RABO01212121212EUR", true],
  ["NL68INGB0000012345EUR", "NL68INGB0000012345USD", false],
  ["NL68INGB0000012345XYZ", "NL68INGB0000012345", false],
  ["37040044/0532013000", "DE89370400440532013000", true],
  ["37040044/532013000EUR", "DE89370400440532013000", true],
  ["37040044/0532013000", "37040044/532013000", true],
  ["37040044/0532013001", "DE89370400440532013000", false],
  ["37040044/05320130001", "DE89370400440532013000", false],
  ["DABADKKK/1234567890", "DK5000400440116243", false],
  ["DABADKKK/1234567890", "1234567890", true],
  ["DABADKKK/1234567890", "NDEADKKK/1234567890", false],
  ["COBADEFFXXX/DE89370400440532013000", "DE89370400440532013000", true],
  ["BE68539007547034/EUR", "be68 5390 0754 7034", true],
  ["1291.99.348EUR", "1291.99.348", true],
  ["BistroBasel1EUR", "BistroBasel1", false],
  ["", "DE89370400440532013000", false],
  ["acct_1", "acct_2", false],
  ["TERMINALEUR", "TERMINAL", false],
  ["37040044/0532013000", "370400440532013000", true],
])("%s and %s are one account: %s", (one, other, isSame) => {
  expect(isSameAccount(one, other)).toBe(isSame);
  expect(isSameAccount(other, one)).toBe(isSame);
});
