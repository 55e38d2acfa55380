/** An owner's settings of an `emvco_generic` provider in tests. */

/** The merchant account of payments, unless a test names another one. */
export const MERCHANT_ID = "M-1";

export const emvcoSettings = (merchantId: string = MERCHANT_ID) => ({
  merchant_account: { tag: "26", guid: "com.example.pay", merchant_id: merchantId },
  category_code: "5812",
  country: "DE",
  merchant_name: "Bistro",
  merchant_city: "Berlin",
});
