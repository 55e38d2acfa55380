/**
 * The columns of Adyen's settlement details report. Their order varies, a merchant adds optional ones, and Adyen adds new ones
 * at the end; all of those become details.
 */
import type { HeaderDictionary } from "../csv/dictionary.ts";

const COLUMNS = {
  companyAccount: ["Company Account"],
  merchantAccount: ["Merchant Account"],
  pspReference: ["Psp Reference"],
  merchantReference: ["Merchant Reference"],
  paymentMethod: ["Payment Method"],
  creationDate: ["Creation Date"],
  timeZone: ["TimeZone", "Creation Date TimeZone"],
  type: ["Type"],
  modificationReference: ["Modification Reference"],
  grossCurrency: ["Gross Currency"],
  grossDebit: ["Gross Debit (GC)", "Gross Debit"],
  grossCredit: ["Gross Credit (GC)", "Gross Credit"],
  exchangeRate: ["Exchange Rate"],
  netCurrency: ["Net Currency"],
  netDebit: ["Net Debit (NC)", "Net Debit"],
  netCredit: ["Net Credit (NC)", "Net Credit"],
  commission: ["Commission (NC)", "Commission"],
  markup: ["Markup (NC)", "Markup"],
  schemeFees: ["Scheme Fees (NC)", "Scheme Fees"],
  interchange: ["Interchange (NC)", "Interchange"],
  /** The four above together. */
  paymentFees: ["Payment Fees (NC)", "Payment Fees"],
  paymentMethodVariant: ["Payment Method Variant"],
  modificationMerchantReference: ["Modification Merchant Reference"],
  batchNumber: ["Batch Number"],
  /** A part of the gross, in its currency. */
  tip: ["Gratuity Amount"],
  terminal: ["Unique Terminal ID", "Terminal ID"],
  store: ["Store"],
} as const satisfies Record<string, readonly string[]>;
export type AdyenField = keyof typeof COLUMNS;

export const ADYEN_COLUMNS: HeaderDictionary<AdyenField> = {
  report: "Adyen's settlement details report",
  version: 3,
  entries: [
    {
      name: "English",
      columns: COLUMNS,
      required: [
        "merchantAccount",
        "pspReference",
        "merchantReference",
        "creationDate",
        "type",
        "modificationReference",
        "grossCurrency",
        "grossDebit",
        "grossCredit",
        "netCurrency",
        "netDebit",
        "netCredit",
      ],
    },
  ],
};
