/** An `emvco_generic` provider in tests: its owner's settings, and the signature of its callbacks. */
import { createHmac } from "node:crypto";

/** The merchant account of payments, unless a test names another one. */
export const MERCHANT_ID = "M-1";

export const emvcoSettings = (merchantId: string = MERCHANT_ID) => ({
  merchant_account: { tag: "26", guid: "com.example.pay", merchant_id: merchantId },
  category_code: "5812",
  country: "DE",
  merchant_name: "Bistro",
  merchant_city: "Berlin",
});

/** The signature of a callback, as the operator of its scheme would make it. */
export function signature(body: string, secret: string, atMs: number = Date.now()): string {
  const timestamp = Math.floor(atMs / 1_000);
  return `t=${timestamp},v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}
