/**
 * The column headers (rows CH) of PayPal's settlement report and transaction detail report. Versions add columns, each
 * section has its own header, and early versions have the names in one word. Columns that are not named here become details, except those with personal
 * data (`PAYPAL_PERSONAL`).
 */
import type { HeaderDictionary } from "../csv/dictionary.ts";

const COLUMNS = {
  transactionId: ["Transaction ID", "TransactionID"],
  invoiceId: ["Invoice ID", "InvoiceID"],
  referenceId: ["PayPal Reference ID", "PayPalReferenceID"],
  referenceIdType: ["PayPal Reference ID Type", "PayPalReferenceIDType"],
  eventCode: ["Transaction Event Code", "TransactionEventCode"],
  initiatedAt: ["Transaction Initiation Date", "TransactionInitiationDate"],
  completedAt: ["Transaction Completion Date", "TransactionCompletionDate"],
  sign: ["Transaction Debit or Credit", "TransactionDebitorCredit"],
  gross: ["Gross Transaction Amount", "GrossTransactionAmount"],
  currency: ["Gross Transaction Currency", "GrossTransactionCurrency"],
  feeSign: ["Fee Debit or Credit", "FeeDebitorCredit"],
  fee: ["Fee Amount", "FeeAmount"],
  feeCurrency: ["Fee Currency", "FeeCurrency"],
  /** Only the transaction detail report has it. */
  status: ["Transactional Status", "TransactionalStatus"],
  subject: ["Transaction Subject", "TransactionSubject"],
  note: ["Transaction Note", "TransactionNote"],
  customField: ["Custom Field", "CustomField"],
  storeId: ["Store ID", "StoreID"],
  terminalId: ["Terminal ID", "TerminalID"],
  bankReferenceId: ["Bank Reference ID", "BankReferenceID"],
} as const satisfies Record<string, readonly string[]>;
export type PaypalField = keyof typeof COLUMNS;

export const PAYPAL_COLUMNS: HeaderDictionary<PaypalField> = {
  report: "PayPal's settlement and transaction detail reports",
  version: 4,
  entries: [
    {
      name: "English",
      columns: COLUMNS,
      required: [
        "transactionId",
        "eventCode",
        "initiatedAt",
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

/** Columns with personal data. Reconciliation does not need them. */
export const PAYPAL_PERSONAL =
  /address|zip|city$|country|^(?:first|last|shipping) name$|payer's account id|consumer (?:id|business name)|consumerid|auction buyer id|phone|e-?mail|loyalty card/i;
