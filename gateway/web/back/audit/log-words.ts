/**
 * The words of the logs in German. The name of an action is a thing and what was done to it (`station_renamed`). The page shows
 * the service's own word as well, because the search of the log uses that word.
 */
import { language } from "../../shared/language.ts";

const THINGS: Readonly<Record<string, string>> = {
  attribution: "Zuordnung",
  attribution_limit: "Grenze der Zuordnung",
  catalogue_item: "Artikel",
  certification: "Zertifikat",
  device: "Gerät",
  enrollment_code: "Code",
  filial: "Filiale",
  filial_robotics: "Robotik",
  intent: "Zahlung",
  issue: "Klärungsfall",
  lease: "Station",
  match: "Zuordnung einer Zeile",
  order: "Bestellung",
  organization: "Organisation",
  payment: "Zahlung",
  platform: "Plattform",
  provider: "Anbieter",
  provider_config: "Anbieter",
  provider_issue: "Klärungsfall",
  provider_secret: "Geheimnis des Anbieters",
  qr: "QR-Code",
  robotics: "Robotik",
  robotics_consumer: "Empfänger",
  robotics_credential: "Zugang des Empfängers",
  sandbox: "Sandbox",
  serving_task: "Aufgabe",
  session: "Sitzung",
  settlement: "Verbuchung",
  station: "Station",
  user: "Person",
  user_password: "Passwort",
  webhook_endpoint: "Endpunkt",
  webhook_secret: "Geheimnis des Endpunkts",
};
const DONE: Readonly<Record<string, string>> = {
  accepted: "angenommen",
  acquired: "übernommen",
  activated: "eingeschaltet",
  assigned: "zugewiesen",
  attributed: "zugeordnet",
  broken: "freigemacht",
  cancelled: "abgebrochen",
  certified: "zertifiziert",
  changed: "geändert",
  cleared: "geschlossen",
  closed: "geschlossen",
  commented: "kommentiert",
  completed: "erledigt",
  confirmed: "bestätigt",
  created: "angelegt",
  deleted: "gelöscht",
  disabled: "abgeschaltet",
  ended: "beendet",
  enrolled: "gekoppelt",
  expired: "abgelaufen",
  failed: "gescheitert",
  frozen: "angehalten",
  issued: "ausgegeben",
  lapsed: "abgelaufen",
  offered: "angeboten",
  offline: "offline",
  online: "online",
  opened: "begonnen",
  paused: "angehalten",
  presented: "gezeigt",
  proposed: "vorgeschlagen",
  refused: "zurückgewiesen",
  registered: "angemeldet",
  rejected: "abgelehnt",
  released: "freigegeben",
  renamed: "umbenannt",
  renewed: "verlängert",
  reset: "zurückgesetzt",
  resumed: "freigegeben",
  revoked: "entzogen",
  rotated: "erneuert",
  seeded: "angelegt",
  set: "festgelegt",
  shown: "gezeigt",
  started: "begonnen",
  succeeded: "bezahlt",
  suspended: "gesperrt",
  unassigned: "nicht mehr zugewiesen",
  unfrozen: "freigegeben",
  withdrawn: "zurückgezogen",
};
const ACTORS: Readonly<Record<string, string>> = {
  cashier: "Kassierer",
  device: "Gerät",
  owner: "Inhaber",
  platform: "Betreiber der Plattform",
  provider: "Anbieter",
  reconciliation_operator: "Abgleicher",
  registry: "Betreiber",
  robotics_consumer: "Empfänger",
  settlement: "Verbuchung",
  system: "System",
};

const ACTORS_EN: Readonly<Record<string, string>> = { platform: "operator (platform)" };

const spaced = (word: string): string => word.split("_").join(" ");
const isGerman = (): boolean => language.value === "de";

export const thingText = (kind: string): string => (isGerman() ? THINGS[kind] : undefined) ?? spaced(kind);
export const actorKindText = (kind: string): string => (isGerman() ? ACTORS[kind] : ACTORS_EN[kind]) ?? spaced(kind);

/** What was done. `own` is the service's word, or null when the text already is that word. */
export function actionText(action: string): { readonly text: string; readonly own: string | null } {
  const own = spaced(action);
  const at = action.lastIndexOf("_");
  const [thing, done] = [THINGS[action.slice(0, at)], DONE[action.slice(at + 1)]];
  if (!isGerman() || thing === undefined || done === undefined) return { text: own, own: null };
  return { text: `${thing} ${done}`, own };
}
