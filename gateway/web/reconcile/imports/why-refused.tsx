/** Why a file is refused or held. */
import type { FileRefusal } from "../../../../services/bus/messages/statement-formats.ts";
import { dictionary } from "../../shared/language.ts";
import { ServiceSentence } from "../../shared/states.tsx";

type Texts = Readonly<Record<FileRefusal, string>>;

const texts = dictionary({
  en: {
    not_this_format: "The file is of another format than was declared.",
    unknown_header: "The columns of this file are not known. Describe them by a mapping.",
    unsupported_version: "This version of the format cannot be read.",
    not_a_statement: "The file is no statement of booked payments. Ask for the statement of a closed day.",
    doctype_refused: "The file has a part that could do harm. Ask for a file without it.",
    not_well_formed: "The file is damaged. Download it again.",
    line_too_long: "A line of the file is too long to be read.",
    not_text: "The file is no text, or has another encoding. Declare the right one.",
    truncated: "The end of the file is missing. Download it again.",
    empty_file: "The file is empty. Download it again.",
    archive_refused: "The archive cannot be read. Unpack it and import the statement itself.",
    too_large: "The file is too large. Ask for a shorter time.",
    ambiguous_dates: "Days and months of this file can be mixed up. Say in a mapping which comes first.",
    mapping_refused: "The mapping does not fit this file.",
    file_lost: "The file is no longer stored. Import it again.",
    import_failed: "The import has failed several times. Ask the operator of this service, then import it again.",
    other_account: "The file names another account. Withdraw it, or release it with a reason.",
    batch_total_mismatch:
      "The lines do not add up to the file's own totals. Ask the provider for a complete file, or release it with a reason.",
    stopped: "The test was interrupted. Start it again.",
    unavailable: "The file could not be read just now. Try again.",
  } satisfies Texts,
  de: {
    not_this_format: "Die Datei hat ein anderes Format als angegeben.",
    unknown_header: "Die Spalten dieser Datei sind nicht bekannt. Beschreiben Sie sie mit einer Zuordnung.",
    unsupported_version: "Diese Version des Formats ist nicht lesbar.",
    not_a_statement:
      "Die Datei ist kein Auszug gebuchter Zahlungen. Fordern Sie den Auszug eines abgeschlossenen Tages an.",
    doctype_refused: "Die Datei hat einen Teil, der schaden könnte. Fordern Sie eine Datei ohne ihn an.",
    not_well_formed: "Die Datei ist beschädigt. Laden Sie sie noch einmal herunter.",
    line_too_long: "Eine Zeile der Datei ist zu lang.",
    not_text: "Die Datei ist kein Text oder hat eine andere Kodierung. Geben Sie die richtige an.",
    truncated: "Das Ende der Datei fehlt. Laden Sie sie noch einmal herunter.",
    empty_file: "Die Datei ist leer. Laden Sie sie noch einmal herunter.",
    archive_refused: "Das Archiv ist nicht lesbar. Entpacken Sie es und importieren Sie den Auszug selbst.",
    too_large: "Die Datei ist zu groß. Fordern Sie einen kürzeren Zeitraum an.",
    ambiguous_dates:
      "Tag und Monat sind in dieser Datei zu verwechseln. Sagen Sie in einer Zuordnung, was zuerst kommt.",
    mapping_refused: "Die Zuordnung passt nicht zu dieser Datei.",
    file_lost: "Die Datei ist nicht mehr gespeichert. Importieren Sie sie noch einmal.",
    import_failed:
      "Der Import ist mehrmals gescheitert. Fragen Sie den Betreiber dieses Dienstes und importieren Sie die Datei dann noch einmal.",
    other_account: "Die Datei nennt ein anderes Konto. Ziehen Sie sie zurück oder geben Sie sie mit einem Grund frei.",
    batch_total_mismatch:
      "Die Zeilen ergeben nicht die Summen, die in der Datei stehen. Fordern Sie eine vollständige Datei an oder geben Sie sie mit einem Grund frei.",
    stopped: "Der Test wurde unterbrochen. Starten Sie ihn noch einmal.",
    unavailable: "Die Datei war gerade nicht lesbar. Versuchen Sie es noch einmal.",
  } satisfies Texts,
});

interface WhyRefusedProps {
  readonly code: string | null;
  /** The service's sentence in English, which names the place in the file. */
  readonly detail: string | null;
}

export function WhyRefused({ code, detail }: WhyRefusedProps) {
  const known = texts() as Readonly<Record<string, string>>;
  return <ServiceSentence text={known[code ?? ""] ?? null} english={detail ?? ""} />;
}
