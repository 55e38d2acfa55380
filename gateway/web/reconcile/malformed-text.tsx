/** Why a row of a file is no line, in the language of the page. When a language lacks a code, this file does not compile. */
import type { MalformedParameters, MalformedReason } from "../../../services/bus/malformed-reasons.ts";
import { dictionary } from "../shared/language.ts";
import { moneyOfMinor } from "./issues/minor-units.ts";

type Texts = { readonly [C in Exclude<MalformedReason, "other">]: (parameters: MalformedParameters<C>) => string };

const malformedTexts = dictionary({
  en: {
    unknown_currency: ({ text }) => `“${text}” is no currency.`,
    no_number: ({ text }) => `“${text}” is not a decimal number.`,
    no_minor_units: ({ text }) => `“${text}” is not a whole number of minor units.`,
    no_hundredths: ({ text }) => `“${text}” is not a whole number of hundredths.`,
    too_many_decimals: ({ amount, currency, limit }) => `${amount} has more decimals than ${currency} has (${limit}).`,
    too_many_digits: ({ limit }) => `The amount has more than ${limit} digits.`,
    too_long: ({ limit }) => `The value is longer than ${limit} characters.`,
    known_with_other_amount: ({ known, known_currency, found, found_currency }) =>
      `The account has this line already, with ${moneyOfMinor(known, known_currency)}; this file has ${moneyOfMinor(found, found_currency)}. If this file is wrong, withdraw it. If the other file is wrong, withdraw both, and upload this one again.`,
    wrong_quotes: () => "A quote is in the wrong place or is never closed.",
    wrong_width: ({ fields, columns }) => `Fields of the row: ${fields}; columns of the header: ${columns}.`,
    wrong_width_after_type: ({ fields, columns }) =>
      `Fields of the row after its type: ${fields}; columns of the header: ${columns}.`,
    no_amount: () => "The row has no amount.",
    no_currency: () => "The row has an amount without its currency.",
    no_date: () => "The row has no date.",
    no_type: () => "The row has no type.",
    no_category: () => "The row has no category.",
    no_transaction_id: () => "The row has no transaction id.",
    no_payment_id: () => "The row has no payment id.",
    not_a_date: ({ text }) => `“${text}” is no date that the report has.`,
    not_an_instant: ({ text }) => `“${text}” is no date and time in ISO 8601.`,
    unknown_word: ({ text }) => `“${text}” is no word that is known here.`,
    changed_by_spreadsheet: ({ text }) =>
      `“${text}” is an id that a spreadsheet has changed. Import the file as the provider made it.`,
    two_ways_to_read: ({ text }) =>
      `“${text}” can be read in two ways, and no amount before it shows which one is meant.`,
    negative_sale: () => "A sale has a negative amount.",
    unmapped_kind: ({ text }) => `The mapping has no kind for “${text}”.`,
    unmapped_direction: ({ text }) => `The mapping has no direction for “${text}”.`,
    no_direction: ({ text }) => `“${text}” has no direction that the mapping knows.`,
    debit_and_credit: () => "The row has an amount in both columns or in none of them.",
    sign_beside_direction: ({ text }) => `“${text}” has a sign beside the direction.`,
    other_separator: ({ text }) => `“${text}” has another separator than the mapping declares.`,
    date_in_other_format: ({ text, formats }) => `“${text}” is no date in ${formats}.`,
    not_a_time: ({ text }) => `“${text}” is no time of day.`,
    fee_not_between: () => "The fee is not what lies between gross and net.",
    neither_cr_nor_dr: ({ text }) => `“${text}” is neither CR nor DR.`,
    no_footer: () => "The file has no footer (FF), so its end may be missing. Download it again.",
    wrong_row_count: ({ stated, found }) =>
      `The section states ${stated} rows and has ${found}. Download the file again.`,
    no_column_headers: () => "The row has no column headers (CH) before it.",
    unknown_row_type: ({ text }) => `“${text}” is no type of row that the report has.`,
    neither_crdt_nor_dbit: () => "CdtDbtInd is neither CRDT nor DBIT.",
    unknown_status: () => "The status is none of BOOK, PDNG, INFO and FUTR.",
    date_not_in_calendar: () => "The date is not in the calendar.",
    entry_without_date: () => "The entry has neither a booking date nor a value date.",
    entry_too_large: ({ transactions, characters }) =>
      `The entry has more than ${transactions} transactions or ${characters} characters.`,
    entry_without_amount: () => "The amount is missing; it is not taken from elsewhere in the entry.",
    negative_amount: () => "The amount is negative; camt gives the sign in CdtDbtInd.",
    balance_unreadable: ({ balance }) => `The amount of the balance ${balance} cannot be read.`,
    balance_without_direction: ({ balance }) => `The balance ${balance} has no CdtDbtInd that is CRDT or DBIT.`,
    entry_outside_statement: () => "The entry stands after the end of its statement, or before its :20:.",
    entry_after_closing: () => "The entry stands after the closing balance of its statement.",
    no_opening_balance: () => "The statement has no opening balance that names the currency.",
    no_closing_balance: () => "The statement has no closing balance.",
    not_a_balance: () => "The balance is not of the form mark, date, currency and amount.",
    not_an_entry: () => "The field is not of the form date, mark (C, D, RC or RD), amount, type and references.",
    balance_date_not_in_calendar: ({ date }) => `The date ${date} is not in the calendar.`,
    value_date_not_in_calendar: ({ date }) => `The value date ${date} is not in the calendar.`,
    entry_date_not_in_calendar: ({ date }) => `The entry date ${date} is not in the calendar.`,
  } satisfies Texts,
  de: {
    unknown_currency: ({ text }) => `„${text}“ ist keine Währung.`,
    no_number: ({ text }) => `„${text}“ ist keine Dezimalzahl.`,
    no_minor_units: ({ text }) => `„${text}“ ist keine ganze Zahl der kleinsten Währungseinheit.`,
    no_hundredths: ({ text }) => `„${text}“ ist keine ganze Zahl von Hundertsteln.`,
    too_many_decimals: ({ amount, currency, limit }) =>
      `${amount} hat mehr Nachkommastellen als ${currency} (${limit}).`,
    too_many_digits: ({ limit }) => `Der Betrag hat mehr als ${limit} Ziffern.`,
    too_long: ({ limit }) => `Der Wert ist länger als ${limit} Zeichen.`,
    known_with_other_amount: ({ known, known_currency, found, found_currency }) =>
      `Das Konto hat diese Zeile schon, mit ${moneyOfMinor(known, known_currency)}; diese Datei hat ${moneyOfMinor(found, found_currency)}. Ist diese Datei falsch, ziehen Sie sie zurück. Ist die andere falsch, ziehen Sie beide zurück und laden Sie diese noch einmal hoch.`,
    wrong_quotes: () => "Ein Anführungszeichen steht an der falschen Stelle oder wird nie geschlossen.",
    wrong_width: ({ fields, columns }) => `Felder der Zeile: ${fields}; Spalten der Kopfzeile: ${columns}.`,
    wrong_width_after_type: ({ fields, columns }) =>
      `Felder der Zeile nach ihrem Typ: ${fields}; Spalten der Kopfzeile: ${columns}.`,
    no_amount: () => "Die Zeile hat keinen Betrag.",
    no_currency: () => "Die Zeile hat einen Betrag ohne seine Währung.",
    no_date: () => "Die Zeile hat kein Datum.",
    no_type: () => "Die Zeile hat keinen Typ.",
    no_category: () => "Die Zeile hat keine Kategorie.",
    no_transaction_id: () => "Die Zeile hat keine Transaktionskennung.",
    no_payment_id: () => "Die Zeile hat keine Zahlungskennung.",
    not_a_date: ({ text }) => `„${text}“ ist kein Datum, wie es der Bericht hat.`,
    not_an_instant: ({ text }) => `„${text}“ ist kein Zeitpunkt nach ISO 8601.`,
    unknown_word: ({ text }) => `„${text}“ ist kein Wort, das hier bekannt ist.`,
    changed_by_spreadsheet: ({ text }) =>
      `„${text}“ ist eine Kennung, die eine Tabellenkalkulation geändert hat. Importieren Sie die Datei so, wie der Anbieter sie erstellt hat.`,
    two_ways_to_read: ({ text }) =>
      `„${text}“ kann auf zwei Arten gelesen werden, und kein Betrag davor zeigt, welche gemeint ist.`,
    negative_sale: () => "Ein Verkauf hat einen negativen Betrag.",
    unmapped_kind: ({ text }) => `Die Zuordnung hat keine Art für „${text}“.`,
    unmapped_direction: ({ text }) => `Die Zuordnung hat keine Richtung für „${text}“.`,
    no_direction: ({ text }) => `„${text}“ hat keine Richtung, die die Zuordnung kennt.`,
    debit_and_credit: () => "Die Zeile hat in beiden Spalten oder in keiner einen Betrag.",
    sign_beside_direction: ({ text }) => `„${text}“ hat ein Vorzeichen neben der Richtung.`,
    other_separator: ({ text }) => `„${text}“ hat ein anderes Trennzeichen, als die Zuordnung angibt.`,
    date_in_other_format: ({ text, formats }) =>
      `„${text}“ ist kein Datum in der Form ${formats.split(" or ").join(" oder ")}.`,
    not_a_time: ({ text }) => `„${text}“ ist keine Uhrzeit.`,
    fee_not_between: () => "Die Gebühr ist nicht das, was zwischen Brutto und Netto liegt.",
    neither_cr_nor_dr: ({ text }) => `„${text}“ ist weder CR noch DR.`,
    no_footer: () =>
      "Die Datei hat keine Fußzeile (FF), ihr Ende kann also fehlen. Laden Sie sie noch einmal herunter.",
    wrong_row_count: ({ stated, found }) =>
      `Der Abschnitt nennt ${stated} Zeilen und hat ${found}. Laden Sie die Datei noch einmal herunter.`,
    no_column_headers: () => "Vor der Zeile stehen keine Spaltenköpfe (CH).",
    unknown_row_type: ({ text }) => `„${text}“ ist keine Zeilenart, die der Bericht hat.`,
    neither_crdt_nor_dbit: () => "CdtDbtInd ist weder CRDT noch DBIT.",
    unknown_status: () => "Der Status ist keiner von BOOK, PDNG, INFO und FUTR.",
    date_not_in_calendar: () => "Das Datum gibt es im Kalender nicht.",
    entry_without_date: () => "Die Buchung hat weder ein Buchungsdatum noch ein Wertstellungsdatum.",
    entry_too_large: ({ transactions, characters }) =>
      `Die Buchung hat mehr als ${transactions} Transaktionen oder ${characters} Zeichen.`,
    entry_without_amount: () => "Der Betrag fehlt; er wird nicht von anderer Stelle der Buchung genommen.",
    negative_amount: () => "Der Betrag ist negativ; camt nennt das Vorzeichen in CdtDbtInd.",
    balance_unreadable: ({ balance }) => `Der Betrag des Saldos ${balance} ist nicht lesbar.`,
    balance_without_direction: ({ balance }) => `Der Saldo ${balance} hat kein CdtDbtInd, das CRDT oder DBIT ist.`,
    entry_outside_statement: () => "Die Buchung steht nach dem Ende ihres Auszugs oder vor dessen :20:.",
    entry_after_closing: () => "Die Buchung steht nach dem Endsaldo ihres Auszugs.",
    no_opening_balance: () => "Der Auszug hat keinen Anfangssaldo, der die Währung nennt.",
    no_closing_balance: () => "Der Auszug hat keinen Endsaldo.",
    not_a_balance: () => "Der Saldo hat nicht die Form Zeichen, Datum, Währung und Betrag.",
    not_an_entry: () => "Das Feld hat nicht die Form Datum, Zeichen (C, D, RC oder RD), Betrag, Typ und Referenzen.",
    balance_date_not_in_calendar: ({ date }) => `Das Datum ${date} gibt es im Kalender nicht.`,
    value_date_not_in_calendar: ({ date }) => `Das Wertstellungsdatum ${date} gibt es im Kalender nicht.`,
    entry_date_not_in_calendar: ({ date }) => `Das Buchungsdatum ${date} gibt es im Kalender nicht.`,
  } satisfies Texts,
});

interface Malformed {
  readonly reason_code: MalformedReason;
  readonly reason_parameters: Readonly<Record<string, string>>;
  readonly reason: string;
}

/** A code without a text here shows the service's sentence, which is English. */
export function MalformedText({ reason_code: code, reason_parameters: parameters, reason }: Malformed) {
  const texts = malformedTexts() as Readonly<Record<string, ((parameters: object) => string) | undefined>>;
  const text = texts[code];
  return text === undefined ? <span lang="en">{reason}</span> : <>{text(parameters)}</>;
}
