/** The title of each kind of issue, and what a person does about it. When a language lacks a kind, the code does not compile. */
import { language } from "../shared/language.ts";
import type { Issue } from "./issues/issue-list.ts";

type Kind = Issue["kind"];
type KindTexts = Readonly<Record<Kind, readonly [title: string, help: string]>>;

const en: KindTexts = {
  unmatched_money: ["Money without a payment", "Attribute the money to an open order, or pay it back."],
  amount_over: ["More than expected", "Pay the difference back, or close it with the reason."],
  amount_under: ["Less than expected", "Collect the difference, or close it with the reason."],
  amount_unknown: ["Amount cannot be read", "Ask the provider for the amount."],
  currency_mismatch: ["Another currency", "Check the terminal's currency, and whether the amount was converted."],
  account_mismatch: ["Another account", "Ask the provider which account has received the money."],
  reference_mismatch: ["Reference does not match", "Confirm or reject the candidate."],
  late_money: ["Money that came late", "Attribute the money to its order, or pay it back."],
  duplicate_money: ["Paid twice", "Pay the second payment back to the guest."],
  settlement_refused: ["Order was not settled", "Attribute the money to another order, or pay it back."],
  missing_in_statement: [
    "Missing in the statement",
    "Import the statements that are missing, or ask the provider for the payment.",
  ],
  direction_mismatch: ["Opposite direction", "Check whether the terminal has refunded the payment."],
  status_mismatch: ["Another status", "Check the terminal's slip: the guest may not have paid."],
  ambiguous_match: ["Several payments fit", "Choose the payment, or reject the candidates."],
  duplicate_in_statement: ["Charged twice", "Pay the second charge back to the guest."],
  possible_duplicate: ["Possibly twice", "Check whether these are one payment or several."],
  date_out_of_window: ["Days apart", "Check that both are the same payment, and close it with the reason."],
  fee_mismatch: ["Fee does not add up", "Ask the provider for the correct fee."],
  refund_not_registered: ["Refund", "Check who has refunded it, and close it with the reason."],
  chargeback_not_registered: [
    "Chargeback",
    "Answer the provider within its time limit, and close it with the outcome.",
  ],
  wrong_station: ["Another station", "Check which station has collected, and which terminal it has used."],
  rounding: ["Rounded", "Close it."],
  tip: ["Tip", "Pass the tip on, and close it."],
  batch_total_mismatch: ["Payout does not add up", "Import the statements that are missing, or ask the provider."],
  malformed_line: [
    "Row cannot be read",
    "Read the row and its reason; withdraw the file and import a corrected one, or close it.",
  ],
  after_closing: [
    "Came after the closing",
    "Decide the difference itself, and close this with what the books of the period do about it.",
  ],
};

const de: KindTexts = {
  unmatched_money: ["Geld ohne Zahlung", "Das Geld einer offenen Bestellung zuordnen oder zurückzahlen."],
  amount_over: ["Mehr als erwartet", "Den Unterschied zurückzahlen oder mit Begründung schließen."],
  amount_under: ["Weniger als erwartet", "Den Unterschied einziehen oder mit Begründung schließen."],
  amount_unknown: ["Betrag nicht lesbar", "Den Anbieter nach dem Betrag fragen."],
  currency_mismatch: ["Andere Währung", "Prüfen, welche Währung das Terminal hat und ob umgerechnet wurde."],
  account_mismatch: ["Anderes Konto", "Den Anbieter fragen, welches Konto das Geld erhalten hat."],
  reference_mismatch: ["Referenz passt nicht", "Den Kandidaten bestätigen oder ablehnen."],
  late_money: ["Geld, das zu spät kam", "Das Geld seiner Bestellung zuordnen oder zurückzahlen."],
  duplicate_money: ["Doppelt bezahlt", "Die zweite Zahlung dem Gast zurückzahlen."],
  settlement_refused: ["Bestellung nicht beglichen", "Das Geld einer anderen Bestellung zuordnen oder zurückzahlen."],
  missing_in_statement: ["Fehlt im Auszug", "Fehlende Auszüge importieren oder den Anbieter nach der Zahlung fragen."],
  direction_mismatch: ["Umgekehrte Richtung", "Prüfen, ob das Terminal die Zahlung erstattet hat."],
  status_mismatch: ["Anderer Status", "Den Beleg des Terminals prüfen: Vielleicht hat der Gast nicht bezahlt."],
  ambiguous_match: ["Mehrere Zahlungen passen", "Die Zahlung wählen oder die Kandidaten ablehnen."],
  duplicate_in_statement: ["Doppelt belastet", "Die zweite Belastung dem Gast zurückzahlen."],
  possible_duplicate: ["Vielleicht doppelt", "Prüfen, ob es eine Zahlung ist oder mehrere."],
  date_out_of_window: ["Tage auseinander", "Prüfen, ob es dieselbe Zahlung ist, und mit dem Grund schließen."],
  fee_mismatch: ["Gebühr geht nicht auf", "Den Anbieter nach der richtigen Gebühr fragen."],
  refund_not_registered: ["Erstattung", "Prüfen, wer erstattet hat, und mit Begründung schließen."],
  chargeback_not_registered: ["Rückbelastung", "Dem Anbieter fristgerecht antworten und mit dem Ergebnis schließen."],
  wrong_station: ["Andere Station", "Prüfen, welche Station kassiert und welches Terminal sie benutzt hat."],
  rounding: ["Gerundet", "Schließen."],
  tip: ["Trinkgeld", "Das Trinkgeld weitergeben und schließen."],
  batch_total_mismatch: ["Auszahlung geht nicht auf", "Fehlende Auszüge importieren oder den Anbieter fragen."],
  malformed_line: [
    "Zeile nicht lesbar",
    "Zeile und Grund lesen; die Datei zurückziehen und berichtigt importieren, oder schließen.",
  ],
  after_closing: [
    "Kam nach dem Abschluss",
    "Die Abweichung selbst entscheiden und dies damit schließen, was die Bücher des Zeitraums dazu sagen.",
  ],
};

export const ISSUE_KINDS = Object.keys(en) as readonly Kind[];

/** For a kind of a newer service, the title is its code. */
const textsOf = (kind: Kind): readonly [string, string] =>
  ((language.value === "de" ? de : en) as Partial<KindTexts>)[kind] ?? [kind, ""];

export const kindTitle = (kind: Kind): string => textsOf(kind)[0];
export const kindHelp = (kind: Kind): string => textsOf(kind)[1];
