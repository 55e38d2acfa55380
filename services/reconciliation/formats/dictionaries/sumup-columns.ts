/**
 * SumUp's transaction report: the names of its columns. They follow the language of the person who downloads it and have
 * changed twice: `Zahlungsart` became `Transaktionsart` in late 2025; since 2026 the id is a code and the date a time stamp.
 * Some columns stay English in every language. An entry that changes makes a new `version`.
 */
import type { DictionaryEntry, HeaderDictionary } from "../csv/dictionary.ts";

export type SumupField =
  | "date"
  | "id"
  | "type"
  | "status"
  | "total"
  | "currency"
  | "tip"
  | "fee"
  | "payout"
  | "payoutDate"
  | "payoutId"
  | "method"
  | "description"
  | "reference";

type Names = Readonly<Record<SumupField, readonly string[]>>;

const ENGLISH: Names = {
  date: ["Date"],
  id: ["Transaction ID"],
  type: ["Transaction type"],
  status: ["Status"],
  total: ["Total"],
  currency: ["Currency"],
  tip: ["Tip amount", "Tip"],
  fee: ["Fee"],
  payout: ["Payout", "Payout amount"],
  payoutDate: ["Payout date"],
  payoutId: ["Payout ID"],
  method: ["Payment method"],
  description: ["Description"],
  reference: ["Reference"],
};
const ENGLISH_DETAILS = (
  "Email|User|Card type|Last 4 digits|Process as|Processed as|Entry mode|Auth code|Net sale|Net amount|Tax amount|" +
  "Card brand|Payment reference"
).split("|");

const GERMAN: Names = {
  date: ["Datum"],
  id: ["Transaktions-ID"],
  type: ["Transaktionsart"],
  status: ["Status"],
  total: ["Betrag inkl. MwSt."],
  currency: ["Währung"],
  tip: ["Trinkgeldbetrag", "Trinkgeld"],
  fee: ["Gebühr"],
  payout: ["Auszahlung", "Auszahlungsbetrag"],
  payoutDate: ["Auszahlungsdatum"],
  payoutId: ["Auszahlungs-ID"],
  method: ["Zahlungsmethode"],
  description: ["Beschreibung"],
  reference: ["Referenz"],
};
const GERMAN_DETAILS = (
  "E-Mail|Nutzer|Kartentyp|Letzte 4 Ziffern|Durchgeführt mit|Eingabemodus|Autorisierungscode|Netto|Nettobetrag|" +
  "Steuerbetrag|Kartenmarke|Konto|Kartensystem|Letzte 4 Ziffern der Karte"
).split("|");

const FRENCH: Names = {
  date: ["Date", "Date de la transaction"],
  id: ["Réf. transaction", "ID de transaction", "ID de la transaction"],
  type: ["Type de transaction", "Type"],
  status: ["Statut"],
  total: ["Total", "Montant total", "Montant TTC", "Montant (TTC)", "Total TTC"],
  currency: ["Devise"],
  tip: ["Pourboire", "Montant du pourboire"],
  fee: ["Frais"],
  payout: ["Versement", "Virement", "Montant du versement", "Montant du virement"],
  payoutDate: ["Date de versement", "Date du versement", "Date de virement", "Date du virement"],
  payoutId: ["ID de versement", "ID du versement", "Réf. versement", "ID de virement", "ID du virement"],
  method: ["Moyen de paiement", "Mode de paiement", "Méthode de paiement"],
  description: ["Description"],
  reference: ["Référence"],
};
const FRENCH_DETAILS = (
  "E-mail|Utilisateur|Type de carte|4 derniers chiffres|Traité comme|Traiter en tant que|Mode de saisie|" +
  "Code d'autorisation|Vente nette|Prix net|Montant net|Montant HT|Montant de la TVA|Montant de la taxe"
).split("|");

const ITALIAN: Names = {
  date: ["Data", "Data della transazione"],
  id: ["ID transazione", "ID della transazione"],
  type: ["Tipo di transazione", "Tipo transazione", "Tipo"],
  status: ["Stato"],
  total: ["Totale", "Importo totale", "Importo IVA inclusa", "Importo (IVA inclusa)"],
  currency: ["Valuta"],
  tip: ["Mancia", "Importo mancia", "Importo della mancia"],
  fee: ["Commissione"],
  payout: ["Accredito", "Versamento", "Importo accredito", "Importo dell'accredito"],
  payoutDate: ["Data di accredito", "Data accredito", "Data dell'accredito", "Data di versamento", "Data versamento"],
  payoutId: ["ID accredito", "ID dell'accredito", "ID versamento", "ID del versamento"],
  method: ["Metodo di pagamento"],
  description: ["Descrizione"],
  reference: ["Riferimento"],
};
const ITALIAN_DETAILS = (
  "E-mail|Utente|Tipo di carta|Ultime 4 cifre|Elaborato come|Modalità di inserimento|Codice di autorizzazione|" +
  "Vendita netta|Importo netto|Importo IVA|Importo delle imposte"
).split("|");

/** The names that a generation changes; the other names stay. */
interface Generations {
  readonly early2025: Partial<Names>;
  readonly late2025: Partial<Names>;
  readonly since2026: Partial<Names>;
}

export const SUMUP_COLUMNS: HeaderDictionary<SumupField> = {
  report: "SumUp's transaction report",
  version: 2,
  // English first: where two entries know as many columns of a file, the first one counts.
  entries: [
    ...entriesOf("English", ENGLISH, ENGLISH_DETAILS, {
      early2025: { type: ["Payment type"] },
      late2025: {},
      since2026: {
        date: ["Timestamp", "Date"],
        id: ["Transaction code", "Transaction ID"],
        total: ["Amount", "Total amount"],
        fee: ["Fee amount"],
      },
    }),
    ...entriesOf("German", GERMAN, GERMAN_DETAILS, {
      early2025: { type: ["Zahlungsart"] },
      late2025: {},
      since2026: {
        date: ["Zeitstempel", "Datum"],
        id: ["Transaktionscode", "Transaktions-ID"],
        total: ["Betrag", "Gesamtbetrag"],
        fee: ["Gebührenbetrag"],
      },
    }),
    ...entriesOf("French", FRENCH, FRENCH_DETAILS, {
      early2025: { type: ["Type de paiement"] },
      late2025: {},
      since2026: {
        date: ["Horodatage", "Date et heure", "Date"],
        id: ["Code de transaction", "Code de la transaction", "Réf. transaction", "ID de transaction"],
        total: ["Montant"],
        fee: ["Montant des frais"],
      },
    }),
    ...entriesOf("Italian", ITALIAN, ITALIAN_DETAILS, {
      early2025: { type: ["Tipo di pagamento"] },
      late2025: {},
      since2026: {
        date: ["Data e ora", "Marca temporale", "Data"],
        id: ["Codice transazione", "Codice della transazione", "ID transazione"],
        total: ["Importo"],
        fee: ["Importo commissione", "Importo della commissione", "Importo commissioni"],
      },
    }),
  ],
};

function entriesOf(
  language: string,
  names: Names,
  details: readonly string[],
  generations: Generations,
): readonly DictionaryEntry<SumupField>[] {
  const informative = [...details, ...ENGLISH_DETAILS];
  const entry = (
    generation: string,
    changed: Partial<Names>,
    english: Partial<Names>,
  ): DictionaryEntry<SumupField> => ({
    name: `${language}, ${generation}`,
    columns: withEnglish({ ...names, ...changed }, { ...ENGLISH, ...english }),
    // The fee distinguishes this report from the report of sold articles, which has the same ids.
    required: ["date", "id", "type", "status", "total", "fee"],
    informative,
  });
  return [
    entry("early 2025", generations.early2025, { type: ["Payment type"] }),
    entry("late 2025", generations.late2025, {}),
    entry("2026", generations.since2026, {
      date: ["Timestamp", "Date"],
      id: ["Transaction code", "Transaction ID"],
      total: ["Amount"],
      fee: ["Fee amount"],
    }),
  ];
}

/** A column may have stayed English. */
function withEnglish(names: Names, english: Names): Names {
  const fields = Object.keys(names) as SumupField[];
  return Object.fromEntries(
    fields.map((field) => [field, [...new Set([...names[field], ...english[field]])]]),
  ) as unknown as Names;
}
