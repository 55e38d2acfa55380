/**
 * The columns of PayPal's activity download and of its monthly statement, in English, German, French and Italian. The owner
 * of the account chooses which columns the download has. With all of them the invoice is there twice: PayPal's, and that of
 * Payflow.
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

/** The sign before a number is a degree sign or an ordinal, depending on the year. */
const FRENCH: Readonly<Partial<Record<ActivityField, readonly string[]>>> = {
  date: ["Date"],
  time: ["Heure"],
  timeZone: ["Fuseau horaire"],
  name: ["Nom"],
  status: ["État"],
  currency: ["Devise"],
  gross: ["Avant commission", "Brut"],
  fee: ["Commission", "Frais"],
  net: ["Net"],
  tip: ["Pourboire"],
  transactionId: ["Numéro de transaction", "N° de transaction", "Nº de transaction"],
  referenceId: [
    "Numéro de la transaction de référence",
    "N° de transaction de référence",
    "Nº de transaction de référence",
  ],
  invoice: ["Numéro de facture", "N° de facture", "Nº de facture", "Identifiant de facture"],
  custom: ["Numéro de client", "N° de client", "Nº de client"],
  subject: ["Objet"],
  note: ["Remarque"],
  impact: ["Impact sur le solde", "Balance Impact"],
  eventCode: ["Code de transaction"],
};

const ITALIAN: Readonly<Partial<Record<ActivityField, readonly string[]>>> = {
  date: ["Data"],
  time: ["Orario", "Ora"],
  timeZone: ["Fuso orario"],
  name: ["Nome"],
  status: ["Stato"],
  currency: ["Valuta"],
  gross: ["Lordo"],
  fee: ["Tariffa"],
  net: ["Netto"],
  tip: ["Mancia"],
  transactionId: ["Codice transazione"],
  referenceId: ["Codice transazione di riferimento"],
  invoice: ["N° ordine commerciante", "Nº ordine commerciante"],
  custom: ["Numero personalizzato"],
  subject: ["Oggetto"],
  note: ["Messaggio"],
  impact: ["Impatto sul saldo"],
  eventCode: ["Codice evento transazione"],
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

function entry(name: string, columns: typeof ENGLISH, ...type: readonly string[]): DictionaryEntry<ActivityField> {
  return { name, columns: { ...columns, type }, required: REQUIRED, repeated: ["invoice"] };
}

export const PAYPAL_ACTIVITY_COLUMNS: HeaderDictionary<ActivityField> = {
  report: "PayPal's activity download",
  version: 3,
  entries: [
    entry("English", ENGLISH, "Type"),
    entry("English, statement", ENGLISH, "Description"),
    entry("German", GERMAN, "Typ", "Art"),
    entry("German, statement", GERMAN, "Beschreibung"),
    entry("French", FRENCH, "Type"),
    entry("French, statement", FRENCH, "Description"),
    entry("Italian", ITALIAN, "Tipo"),
    entry("Italian, statement", ITALIAN, "Descrizione"),
  ],
};

/** Columns with personal data, and the running balance. Reconciliation does not need them. */
export const ACTIVITY_PERSONAL = new RegExp(
  [
    "address|adress|indirizz|e-?mail|phone|téléphone|telefon|ländervorwahl",
    "bank account|bankkonto|compte bancaire|conto bancario",
    "^(?:town|ort|ville|città|zip|plz|code postal|cap|state|bundesland|provincia|country|land|pays|paese)(?:$|\\W)",
    "^état/",
    "^(?:balance|guthaben|solde|saldo)$",
  ].join("|"),
  "i",
);
