/**
 * The column headers (rows CH) of PayPal's settlement report and transaction detail report. Versions add columns, and each
 * section has its own header; all columns that are not named here become details.
 */
import type { HeaderDictionary } from "../csv/dictionary.ts";

const COLUMNS = {
  transactionId: ["Transaction ID"],
  invoiceId: ["Invoice ID"],
  referenceId: ["PayPal Reference ID"],
  referenceIdType: ["PayPal Reference ID Type"],
  eventCode: ["Transaction Event Code"],
  initiatedAt: ["Transaction Initiation Date"],
  completedAt: ["Transaction Completion Date"],
  sign: ["Transaction Debit or Credit"],
  gross: ["Gross Transaction Amount"],
  currency: ["Gross Transaction Currency"],
  feeSign: ["Fee Debit or Credit"],
  fee: ["Fee Amount"],
  feeCurrency: ["Fee Currency"],
  /** Only the transaction detail report has it. */
  status: ["Transactional Status"],
  subject: ["Transaction Subject"],
  note: ["Transaction Note"],
  customField: ["Custom Field"],
  storeId: ["Store ID"],
  terminalId: ["Terminal ID"],
  bankReferenceId: ["Bank Reference ID"],
} as const satisfies Record<string, readonly string[]>;
export type PaypalField = keyof typeof COLUMNS;

export const PAYPAL_COLUMNS: HeaderDictionary<PaypalField> = {
  report: "PayPal's settlement and transaction detail reports",
  version: 2,
  entries: [
    {
      name: "English",
      columns: COLUMNS,
      required: [
        "transactionId",
        "invoiceId",
        "referenceId",
        "eventCode",
        "initiatedAt",
        "completedAt",
        "sign",
        "gross",
        "currency",
        "feeSign",
        "fee",
        "feeCurrency",
      ],
    },
  ],
};

/** Columns with data of persons, which no one needs to reconcile. */
export const PAYPAL_PERSONAL =
  /address|zip|city$|country|^(?:first|last|shipping) name$|payer's account id|consumer (?:id|business name)|consumerid|auction buyer id|phone|e-?mail|loyalty card/i;
