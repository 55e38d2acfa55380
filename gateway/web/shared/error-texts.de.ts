/** What pages say about each error, in German. */
import type { ErrorTexts } from "./failures.ts";

const AGAIN = "Versuchen Sie es in ein paar Sekunden noch einmal; es ist nichts geschehen.";
const ASK_OWNER = "Fragen Sie den Inhaber.";
const REPORT = "Laden Sie die Seite neu. Geschieht es wieder, nennen Sie dem Betreiber die Nummer der Anfrage.";
const CHECK = "Prüfen Sie zuerst, was jetzt angezeigt wird; es kann schon geschehen sein.";

export const de: ErrorTexts = {
  offline: {
    sentence: "Der Dienst ist nicht erreichbar.",
    next: "Prüfen Sie das Netz. Die Seite macht von selbst weiter, sobald die Verbindung wieder da ist.",
  },
  no_answer: { sentence: "Es kam rechtzeitig keine Antwort.", next: CHECK },
  answer_unreadable: { sentence: "Die Antwort war nicht lesbar.", next: REPORT },
  path_not_found: { sentence: "Das gibt es hier nicht.", next: "Gehen Sie zurück oder laden Sie die Seite neu." },
  trailing_slash_missing: { sentence: "Diese Adresse gibt es nicht.", next: REPORT },
  method_not_allowed: { sentence: "Das geht hier nicht.", next: REPORT },
  length_required: { sentence: "Die Anfrage war unvollständig.", next: REPORT },
  body_too_large: { sentence: "Das ist zu groß.", next: "Senden Sie weniger auf einmal." },
  unsupported_media_type: {
    sentence: "Dateien dieser Art werden nicht angenommen.",
    next: "Wählen Sie eine andere Datei.",
  },
  websocket_version_unsupported: {
    sentence: "Dieser Browser ist zu alt für laufende Aktualisierung.",
    next: "Nehmen Sie einen neueren Browser.",
  },
  request_timeout: {
    sentence: "Die Anfrage kam zu langsam an.",
    next: "Prüfen Sie das Netz und versuchen Sie es noch einmal.",
  },
  credential_missing: { sentence: "Dieses Gerät ist nicht angemeldet.", next: "Koppeln Sie es neu." },
  credential_invalid: {
    sentence: "Dieses Gerät ist nicht mehr bekannt.",
    next: "Bitten Sie den Inhaber um einen neuen Code und koppeln Sie es neu.",
  },
  consumer_suspended: { sentence: "Dieses Programm ist gesperrt.", next: ASK_OWNER },
  scope_denied: { sentence: "Ein Gerät dieser Art kann das nicht.", next: "Nehmen Sie ein Gerät der richtigen Art." },
  session_missing: { sentence: "Sie sind nicht angemeldet.", next: "Melden Sie sich an." },
  session_invalid: {
    sentence: "Ihre Sitzung ist zu Ende.",
    next: "Melden Sie sich neu an. Ein laufender Zahlvorgang geht inzwischen weiter.",
  },
  csrf_refused: {
    sentence: "Diese Seite wurde von einer fremden Seite aus geöffnet.",
    next: "Öffnen Sie sie über ihre eigene Adresse.",
  },
  platform_key_missing: {
    sentence: "Dafür ist der Plattformschlüssel nötig.",
    next: "Geben Sie ihn an oder fragen Sie den Betreiber.",
  },
  platform_key_invalid: { sentence: "Der Plattformschlüssel ist falsch.", next: "Prüfen Sie den Schlüssel." },
  signature_invalid: { sentence: "Die Signatur ist ungültig.", next: "Prüfen Sie Geheimnis und Uhr des Absenders." },
  throttled: {
    sentence: "Das sind zu viele Anfragen auf einmal.",
    next: "Warten Sie einen Moment und versuchen Sie es noch einmal.",
  },
  replica_stale: { sentence: "Der Dienst kennt den neuesten Stand gerade nicht.", next: AGAIN },
  internal_error: { sentence: "Im Dienst ist etwas schiefgegangen.", next: CHECK },
  invalid_request: { sentence: "Eine Eingabe ist ungültig.", next: "Korrigieren Sie die markierten Felder." },
  not_found: { sentence: "Das gibt es nicht mehr.", next: "Gehen Sie zurück und laden Sie die Liste neu." },
  conflict: { sentence: "Das geht im jetzigen Zustand nicht.", next: "Laden Sie neu und prüfen Sie den Zustand." },
  already_exists: { sentence: "Eine andere Person hat diese E-Mail-Adresse.", next: "Nehmen Sie eine andere Adresse." },
  permission_denied: { sentence: "Dazu fehlt Ihnen die Berechtigung.", next: ASK_OWNER },
  login_failed: {
    sentence: "E-Mail-Adresse oder Passwort ist falsch.",
    next: "Geben Sie beides noch einmal ein. Der Inhaber kann Ihnen ein neues Passwort geben.",
  },
  login_throttled: {
    sentence: "Es gab zu viele Anmeldeversuche.",
    next: "Warten Sie, oder melden Sie sich dort an, wo Sie schon einmal angemeldet waren.",
  },
  enrollment_code_invalid: {
    sentence: "Dieser Code ist ungültig.",
    next: "Prüfen Sie ihn oder bitten Sie den Inhaber um einen neuen.",
  },
  already_created: {
    sentence: "Ein früherer Klick hat das schon angelegt.",
    next: "Was seine Antwort einmalig zeigte, ist verloren. Schließen Sie das hier und erneuern Sie das Geheimnis in der Liste, oder setzen Sie es dort zurück.",
  },
  idempotency_key_reused: {
    sentence: "Das wurde schon mit anderem Inhalt gesendet.",
    next: "Laden Sie die Seite neu und versuchen Sie es noch einmal.",
  },
  robotics_paused: {
    sentence: "Die Robotik ist in dieser Filiale angehalten.",
    next: "Warten Sie, bis sie wieder läuft.",
  },
  task_expired: { sentence: "Die Zeit dieses Angebots ist vorbei.", next: "Machen Sie ein neues Angebot." },
  task_not_actionable: {
    sentence: "Die Aufgabe ist inzwischen weiter.",
    next: "Laden Sie neu und prüfen Sie ihren Status.",
  },
  webhook_target_refused: {
    sentence: "An diese Adresse dürfen keine Webhooks gehen.",
    next: "Nehmen Sie eine öffentliche Adresse mit https.",
  },
  endpoint_unavailable: {
    sentence: "Der Endpunkt dieser Zustellung ist nicht in Gebrauch.",
    next: "Aktivieren Sie zuerst den Endpunkt.",
  },
  delivery_lapsed: {
    sentence: "Dieses Angebot ist abgelaufen und wird nicht mehr gesendet.",
    next: "Machen Sie ein neues Angebot.",
  },
  storage_low: {
    sentence: "Die Festplatte des Dienstes ist fast voll; es ist nichts geschehen.",
    next: "Informieren Sie den Inhaber. Laufende Zahlvorgänge können abgeschlossen werden.",
  },
  busy: { sentence: "Der Dienst hat gerade zu viel zu tun.", next: AGAIN },
  unavailable: { sentence: "Ein Teil des Dienstes antwortet nicht.", next: CHECK },
  station_unknown: { sentence: "Diese Station gibt es nicht.", next: "Wählen Sie eine andere Station." },
  device_unknown: { sentence: "Dieses Gerät gibt es nicht.", next: "Laden Sie die Liste neu." },
  device_limit_reached: {
    sentence: "Die Station hat so viele Geräte, wie sie haben kann.",
    next: "Entfernen Sie ein Gerät, das nicht gebraucht wird.",
  },
  station_leased: {
    sentence: "Jemand anderes kassiert an dieser Station.",
    next: "Bitten Sie um die Freigabe oder übernehmen Sie die Station. Ein laufender Zahlvorgang geht mit Ihnen weiter.",
  },
  session_ended: { sentence: "Ihre Sitzung ist zu Ende.", next: "Melden Sie sich neu an." },
  lease_required: {
    sentence: "Sie haben diese Station nicht mehr.",
    next: "Übernehmen Sie die Station und versuchen Sie es noch einmal.",
  },
  route_not_offered: {
    sentence: "Diese Zahlungsart ist gerade nicht verfügbar.",
    next: "Wählen Sie eine andere, oder beheben Sie, was der Grund nennt.",
  },
  collection_active: {
    sentence: "An dieser Station läuft schon ein Zahlvorgang.",
    next: "Beenden Sie ihn zuerst: bestätigen, wenn der Gast bezahlt hat, sonst abbrechen.",
  },
  amount_not_collectable: {
    sentence: "Bei dieser Bestellung gibt es nichts zu kassieren.",
    next: "Fügen Sie eine Position hinzu.",
  },
  money_may_have_moved: {
    sentence: "Bei einem früheren Zahlvorgang dieser Bestellung kann Geld geflossen sein.",
    next: "Klären Sie, ob der Gast schon bezahlt hat, und bestätigen Sie dann.",
  },
  handoff_not_assigned: {
    sentence: "Dieser Zahlvorgang ist nicht für dieses Gerät.",
    next: "Nehmen Sie das Gerät, dem er übergeben wurde.",
  },
  intent_unknown: { sentence: "Diesen Zahlvorgang gibt es nicht.", next: "Laden Sie die Seite neu." },
  intent_not_actionable: {
    sentence: "Dieser Zahlvorgang ist beendet.",
    next: "War er erfolgreich, ist nichts mehr zu tun. Sonst klären Sie am Beleg, ob der Gast bezahlt hat, bevor Sie neu kassieren.",
  },
  evidence_required: {
    sentence: "Es gibt noch keinen Nachweis einer Zahlung.",
    next: "Warten Sie auf das Gerät oder den Anbieter. Brechen Sie nur ab, wenn der Gast sicher nicht bezahlt hat.",
  },
  reference_required: { sentence: "Die Belegnummer des Terminals fehlt.", next: "Geben Sie sie vom Beleg ein." },
  settlement_in_progress: { sentence: "Die Zahlung wird gerade gebucht.", next: "Warten Sie einen Moment." },
  order_changed: {
    sentence: "Die Bestellung ist nicht mehr so, wie der Gast sie gesehen hat; es wurde nichts gebucht.",
    next: "Brechen Sie ab, klären Sie, was der Gast bezahlt hat, und kassieren Sie den neuen Betrag.",
  },
  order_already_paid: {
    sentence: "Die Bestellung ist schon bezahlt; es wurde nichts noch einmal gebucht.",
    next: "Kassieren Sie nichts mehr. Hat der Gast zweimal bezahlt, zahlen Sie einmal zurück.",
  },
  order_voided: {
    sentence: "Die Bestellung wurde storniert; es wurde nichts gebucht.",
    next: "Brechen Sie ab. Hat der Gast bezahlt, zahlen Sie es zurück.",
  },
  order_unknown: {
    sentence: "Diese Bestellung gibt es hier nicht; es wurde nichts gebucht.",
    next: "Suchen Sie sie an ihrer Station. Hat der Gast bezahlt, informieren Sie den Inhaber.",
  },
  money_already_used: {
    sentence: "Dieses Geld hat schon etwas anderes bezahlt; es wurde nichts gebucht.",
    next: "Brechen Sie ab und fragen Sie den Inhaber, was damit bezahlt wurde.",
  },
  reference_already_used: {
    sentence: "Diese Belegnummer hat schon eine andere Bestellung bezahlt; es wurde nichts gebucht.",
    next: "Vergleichen Sie den Beleg mit jener Bestellung. Deckt eine Zahlung beide, bestätigen Sie das.",
  },
  device_suspended: { sentence: "Der Inhaber hat dieses Gerät gesperrt.", next: ASK_OWNER },
  device_frozen: { sentence: "Dieses Gerät ist eingefroren.", next: ASK_OWNER },
  station_suspended: {
    sentence: "Der Inhaber hat diese Station gesperrt.",
    next: "Kassieren Sie an einer anderen Station oder fragen Sie den Inhaber.",
  },
  station_closed: { sentence: "Diese Station ist geschlossen.", next: "Kassieren Sie an einer anderen Station." },
  station_frozen: { sentence: "Diese Station ist eingefroren; bar geht weiterhin.", next: ASK_OWNER },
  organization_frozen: { sentence: "Alle Stationen sind eingefroren; bar geht weiterhin.", next: ASK_OWNER },
  platform_frozen: {
    sentence: "Die Plattform ist eingefroren; bar geht weiterhin.",
    next: "Warten Sie oder kassieren Sie bar.",
  },
};
