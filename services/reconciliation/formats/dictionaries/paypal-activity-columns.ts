/**
 * The columns of PayPal's activity download and of its monthly statement, in German and English. The account's owner chooses
 * which columns the download has.
 */
import type { DictionaryEntry, HeaderDictionary } from "../csv/dictionary.ts";

const FIELDS = [
  "date",
  "time",
  "timeZone",
  "name",
  "type",
  "status",
  "currency",
  "gross",
  "fee",
  "net",
  "tip",
  "transactionId",
  "referenceId",
  "invoice",
  "custom",
  "subject",
  "note",
  "impact",
  "eventCode",
] as const;
export type ActivityField = (typeof FIELDS)[number];

const ENGLISH: Readonly<Partial<Record<ActivityField, readonly string[]>>> = {
  date: ["Date"],
  time: ["Time"],
  timeZone: ["TimeZone", "Time Zone"],
  name: ["Name"],
  status: ["Status"],
  currency: ["Currency"],
  gross: ["Gross"],
  fee: ["Fee"],
  net: ["Net"],
  tip: ["Tip"],
  transactionId: ["Transaction ID"],
  referenceId: ["Reference Txn ID"],
  invoice: ["Invoice Number", "Invoice ID"],
  custom: ["Custom Number"],
  subject: ["Subject"],
  note: ["Note"],
  impact: ["Balance Impact"],
  eventCode: ["Transaction Event Code"],
};

const GERMAN: Readonly<Partial<Record<ActivityField, readonly string[]>>> = {
  date: ["Datum"],
  time: ["Uhrzeit", "Zeit"],
  timeZone: ["Zeitzone"],
  name: ["Name"],
  status: ["Status"],
  currency: ["Währung"],
  gross: ["Brutto"],
  fee: ["Gebühr", "Entgelt"],
  net: ["Netto"],
  tip: ["Trinkgeld"],
  transactionId: ["Transaktionscode", "Transactionscode"],
  referenceId: ["Zugehöriger Transaktionscode", "Txn-Referenzkennung"],
  invoice: ["Rechnungsnummer"],
  custom: ["Individuelle Nummer", "Zollnummer"],
  subject: ["Betreff"],
  note: ["Hinweis"],
  impact: ["Auswirkung auf Guthaben"],
  eventCode: ["Transaktionsereigniscode"],
};

const REQUIRED: readonly ActivityField[] = [
  "date",
  "timeZone",
  "type",
  "currency",
  "gross",
  "fee",
  "net",
  "transactionId",
];

function entry(name: string, columns: typeof ENGLISH, type: string): DictionaryEntry<ActivityField> {
  return { name, columns: { ...columns, type: [type] }, required: REQUIRED };
}

export const PAYPAL_ACTIVITY_COLUMNS: HeaderDictionary<ActivityField> = {
  report: "PayPal's activity download",
  version: 2,
  entries: [
    entry("English", ENGLISH, "Type"),
    entry("English, statement", ENGLISH, "Description"),
    entry("German", GERMAN, "Typ"),
    entry("German, statement", GERMAN, "Beschreibung"),
  ],
};

/** Columns with personal data, and the running balance. Reconciliation does not need them. */
export const ACTIVITY_PERSONAL =
  /address|adress|e-?mail|phone|telefon|^(?:town|ort|zip|plz|state|bundesland|country|land)\b|ländervorwahl|bank account|bankkonto|^(?:balance|guthaben)$/i;
