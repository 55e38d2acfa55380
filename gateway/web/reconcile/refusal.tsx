/** Why the service refuses a decision. Each reason of a `conflict` has its own text; other failures have their general texts. */
import type { IMPORT_CONFLICTS } from "../../../services/bus/messages/import-decisions.ts";
import type { ISSUE_CONFLICTS } from "../../../services/bus/messages/issues.ts";
import type { CLOSING_CONFLICTS } from "../../../services/bus/messages/reconciliation-closings.ts";
import type { MATCH_CONFLICTS } from "../../../services/bus/messages/reconciliation-matches.ts";
import type { MAPPING_CONFLICTS } from "../../../services/bus/messages/statement-mappings.ts";
import { errorText } from "../shared/error-texts.ts";
import type { Failure } from "../shared/failures.ts";
import { language } from "../shared/language.ts";
import { FailureNotice, Notice, ServiceSentence } from "../shared/states.tsx";
import { toast, toastFailure } from "../shared/toasts.tsx";

type Reason = (
  | typeof ISSUE_CONFLICTS
  | typeof MATCH_CONFLICTS
  | typeof CLOSING_CONFLICTS
  | typeof MAPPING_CONFLICTS
  | typeof IMPORT_CONFLICTS
)[number];

/** English pages show the service's own sentence, which names amounts and people. */
const GERMAN: Readonly<Record<Reason, string>> = {
  issue_attributed: "Mit diesem Geld ist schon eine Bestellung bezahlt. Sehen Sie sich die Differenz noch einmal an.",
  issue_closed: "Diese Differenz ist schon geschlossen. Sehen Sie nach, wer sie geschlossen hat.",
  issue_ended: "Die Ursache dieser Differenz ist weggefallen. Es ist nichts mehr zu entscheiden.",
  issue_superseded: "Eine neuere Differenz ist an ihre Stelle getreten. Entscheiden Sie diese.",
  evidence_changed: "Die Angaben haben sich geändert. Sehen Sie sie noch einmal an und entscheiden Sie dann.",
  closed_by_another: "Nur wer sie geschlossen hat, kann das rückgängig machen.",
  undo_too_late: "Dafür ist es zu spät. Schreiben Sie einen Kommentar.",
  period_closed: "Der Zeitraum ist abgeschlossen, und das bleibt so. Schreiben Sie einen Kommentar.",
  too_many_comments: "Diese Differenz hat so viele Kommentare, wie sie haben kann.",
  attribution_under_way: "Sie wird gerade zugeordnet. Versuchen Sie es gleich noch einmal.",
  amount_unknown: "Der Betrag ist nicht lesbar. Sehen Sie nach, was der Anbieter gesendet hat.",
  amount_contradicted: "Der Anbieter hat verschiedene Beträge oder Konten gemeldet. Fragen Sie ihn.",
  amount_differs: "Betrag oder Währung passen nicht zur Bestellung. Wählen Sie eine andere Bestellung.",
  money_unnamed: "Das Geld hat keine Referenz des Anbieters und könnte doppelt zahlen. Zahlen Sie es zurück.",
  money_has_paid: "Mit diesem Geld ist schon eine Bestellung bezahlt.",
  money_attributed: "Dieses Geld ist über eine andere Differenz zugeordnet. Sehen Sie sich diese an.",
  money_closed: "Dieses Geld ist mit einer anderen Differenz erledigt worden. Sehen Sie sich diese an.",
  money_may_settle: "Das Geld kann die Bestellung noch von selbst bezahlen. Versuchen Sie es später noch einmal.",
  not_attributable: "Mit dieser Differenz kann keine Bestellung bezahlt werden. Schließen Sie sie mit einem Grund.",
  import_withdrawing: "Die Datei wird gerade zurückgezogen. Sehen Sie gleich noch einmal nach.",
  line_confirmed: "Die Zeile ist als eine andere Zahlung bestätigt. Lehnen Sie das zuerst ab.",
  second_person_needed: "Über diesen Betrag entscheiden zwei Personen. Schlagen Sie die Zuordnung vor.",
  proposal_waiting: "Ein anderer Vorschlag wartet. Bestätigen Sie ihn oder lehnen Sie ihn ab.",
  proposal_ended: "Dieser Vorschlag gilt nicht mehr. Sehen Sie sich die Differenz noch einmal an.",
  own_proposal: "Das haben Sie selbst vorgeschlagen. Eine andere Person entscheidet darüber.",
  proposed_by_another: "Das hat eine andere Person vorgeschlagen. Lehnen Sie es ab.",
  order_not_open: "Diese Bestellung ist nicht mehr offen. Wählen Sie eine andere.",
  order_being_collected: "Diese Bestellung wird gerade kassiert. Beenden Sie das zuerst.",
  other_mode: "Testgeld und echtes Geld lassen sich nicht mischen. Wählen Sie eine andere Bestellung.",
  other_filial: "Das Geld ging an eine andere Filiale. Wählen Sie eine Bestellung dieser Filiale.",
  sums_differ: "Die Summen sind verschieden. Nur gleiche Summen lassen sich bestätigen.",
  other_currency: "Zeilen und Zahlungen haben verschiedene Währungen.",
  several_on_both_sides: "Auf einer Seite darf nur eines stehen. Bestätigen Sie die Teile einzeln.",
  line_matched: "Die Zeile gehört zu einer anderen Zahlung. Lehnen Sie das zuerst ab.",
  payment_matched: "Die Zahlung gehört zu einer anderen Zeile. Lehnen Sie das zuerst ab.",
  line_attributed: "Mit dem Geld dieser Zeile ist eine Bestellung bezahlt, und das bleibt so.",
  nothing_settled: "Damit wurde keine Bestellung bezahlt. Lehnen Sie es ab, und ordnen Sie dann das Geld der Zeile zu.",
  period_not_ready: "Dem Zeitraum fehlt noch etwas. Laden Sie die Liste neu.",
  no_signing_key: "Diese Installation kann nicht unterschreiben. Fragen Sie ihren Betreiber.",
  mapping_exists: "Der Name ist vergeben. Wählen Sie einen anderen.",
  mapping_changed: "Eine andere Person hat die Zuordnung geändert. Laden Sie sie neu.",
  too_many_mappings: "Es gibt so viele Zuordnungen, wie es geben kann.",
  file_gone: "Die Datei ist nicht mehr gespeichert. Importieren Sie sie noch einmal.",
  import_needs_format: "Der Import wartet auf sein Format. Bestätigen Sie es zuerst.",
  import_waiting: "Der Import wartet, bis er an der Reihe ist.",
  import_importing: "Der Import läuft gerade. Versuchen Sie es danach noch einmal.",
  import_held: "Der Import wird angehalten. Geben Sie ihn frei oder ziehen Sie ihn zurück.",
  import_imported: "Der Import ist schon fertig.",
  import_refused: "Die Datei wurde abgelehnt, es ist nichts davon gespeichert.",
  import_withdrawn: "Der Import ist zurückgezogen. Importieren Sie die Datei noch einmal.",
};

function germanOf({ reason }: Failure): string | null {
  return (GERMAN as Partial<Record<string, string>>)[reason ?? ""] ?? null;
}

const isNamed = ({ code, reason }: Failure): boolean => code === "conflict" && reason !== undefined;

export function Refusal({ failure }: { readonly failure: Failure }) {
  if (!isNamed(failure)) return <FailureNotice failure={failure} />;
  return (
    <Notice tone="bad" title={errorText(failure).sentence} isUrgent>
      <ServiceSentence text={germanOf(failure)} english={failure.detail} />
    </Notice>
  );
}

/** Shows a failure as a toast, for a button that has no other place for it. */
export function toastRefusal(failure: Failure): void {
  const sentence = language.peek() === "de" ? germanOf(failure) : failure.detail;
  if (isNamed(failure) && sentence !== null && sentence !== "") toast(sentence);
  else toastFailure(failure);
}
