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
  ["acct_1", "acct_2", false],
  ["TERMINALEUR", "TERMINAL", false],
])("%s and %s are one account: %s", (one, other, isSame) => {
  expect(isSameAccount(one, other)).toBe(isSame);
  expect(isSameAccount(other, one)).toBe(isSame);
});
