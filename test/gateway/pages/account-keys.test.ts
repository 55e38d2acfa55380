/** The page names and finds the issues of an account by the key that the service gives them. */
import { expect, test } from "vitest";
import { accountKey, accountOf } from "../../../gateway/web/reconcile/account-keys.ts";

test("issues of an account have the key of its provider config, or else that of the account", () => {
  const terminal = { account_id: 3, config_id: null };
  const qr = { account_id: 4, config_id: 3 };
  expect([terminal, qr].map(accountKey)).toEqual(["statement:3", "provider:3"]);
  expect(accountOf([terminal, qr], "provider:3")).toBe(qr);
  expect(accountOf([terminal, qr], "statement:4")).toBeUndefined();
});
