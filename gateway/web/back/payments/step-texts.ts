/**
 * The steps of a payment in German. The service sends an English sentence for each step; German pages show it as a detail.
 * When a step is missing here, the code does not compile.
 */
import type { ReportedOutcome } from "../../../../machines/payment-intent.ts";
import type { StationEvent } from "../../../../machines/station/event.ts";
import { language } from "../../shared/language.ts";
import type { ReplyOf } from "../../shared/operations.ts";
import { label } from "../shell/labels.ts";

export type Entry = ReplyOf<"GET /api/backoffice/v1/intents/{intent_id}/timeline/">["entries"][number];

type StepType =
  | Extract<StationEvent, { readonly intentId: number }>["type"]
  | "lease_taken_over"
  | "lease_broken"
  | "order_shown"
  | "order_cleared"
  | "audit_gap"
  | "log_lost"
  | "provider_issue_opened"
  | "provider_issue_attributed"
  | "provider_issue_closed";
type Data = Entry["data"];

const OUTCOMES: Readonly<Record<ReportedOutcome, string>> = {
  reported_success: "eine Genehmigung",
  reported_declined: "eine Ablehnung",
  reported_cancelled: "einen Abbruch",
  reported_unknown: "einen unbekannten Ausgang",
};

const outcome = ({ outcome: reported }: Data): string => OUTCOMES[reported as ReportedOutcome] ?? "einen Ausgang";
const why = ({ reason }: Data): string => (typeof reason === "string" ? `: ${label("endReason", reason)}` : "");

const GERMAN: Readonly<Record<StepType, (data: Data) => string>> = {
  intent_created: () => "Die Zahlung wurde begonnen.",
  intent_presented: () => "Das Gerät hat die Zahlung abgeholt.",
  outcome_reported: (data) => `Das Gerät meldete ${outcome(data)}. Das ist ein Nachweis und schließt nichts ab.`,
  late_evidence_kept: (data) =>
    `Das Gerät meldete ${outcome(data)}, als das nicht mehr angenommen wurde. Es bleibt als Nachweis.`,
  settlement_started: () => "Der Erhalt des Geldes wurde bestätigt.",
  settlement_refused: () => "Der Abschluss wurde zurückgewiesen. Nichts wurde verbucht.",
  intent_succeeded: () => "Die Bestellung ist bezahlt.",
  settlement_conflict: () => "Die Bestellung wurde verbucht, obwohl die Zahlung schon zu Ende war. Bitte prüfen.",
  lease_taken_over: () => "Ein anderer Kassierer hat die Station übernommen.",
  lease_broken: () => "Der Inhaber hat die Station freigemacht.",
  intent_cancelled: () => "Die Zahlung wurde abgebrochen.",
  qr_presented: () => "Der QR-Code wurde dem Gast gezeigt.",
  provider_failed: (data) => `Die Zahlung endete${why(data)}.`,
  provider_confirmed: () => "Der Anbieter bestätigte, dass der Gast bezahlt hat.",
  late_money_kept: () => "Der Anbieter meldet Geld, das die beendete Zahlung nicht mehr nehmen kann. Bitte prüfen.",
  money_differs: () => "Der Anbieter meldet Geld, das nicht zu dieser Zahlung passt. Ein Klärungsfall nennt es.",
  intent_overtaken: (data) => `Die Zahlung endete${why(data)}.`,
  end_reported: () => "Der Anbieter weiß, dass die Zahlung zu Ende ist.",
  unclear_resolved: () => "Es steht fest, dass für diese Zahlung kein Geld floss.",
  second_collection_confirmed: () =>
    "Es wurde trotz einer früheren Zahlung, bei der vielleicht Geld floss, noch einmal kassiert.",
  intent_expired: () => "Die Zahlung ist abgelaufen.",
  order_shown: () => "Die Bestellung wurde gesetzt.",
  order_cleared: () => "Die Bestellung wurde geschlossen.",
  audit_gap: () => "Hier fehlen Schritte der Station.",
  log_lost: () => "Ein Ausfall hat Schritte der Station verloren. Sie sind hier aufgeführt.",
  provider_issue_opened: () => "Ein Klärungsfall wurde eröffnet.",
  provider_issue_attributed: () => "Das Geld eines Klärungsfalls wurde einer Bestellung zugeordnet.",
  provider_issue_closed: () => "Ein Klärungsfall wurde geschlossen.",
};

/** Null when this file has no text for the step: the page then shows the service's sentence. */
export function stepText({ type, data }: Entry): string | null {
  if (language.value === "en") return null;
  if (type.slice(-9) === "_unfrozen") return "Ein Notschalter wurde aufgehoben.";
  if (type.slice(-7) === "_frozen") return "Ein Notschalter wurde betätigt.";
  return (GERMAN as Partial<Record<string, (data: Data) => string>>)[type]?.(data) ?? null;
}

const GERMAN_ACTORS: Readonly<Record<string, string>> = {
  registry: "Betreiber der Plattform",
  settlement: "Verbuchung",
  provider: "Zahlungsanbieter",
  system: "System",
};

/** The name of a person or a device; for other actors their kind. */
export const actorText = ({ actor }: Entry): string =>
  (language.value === "de" ? GERMAN_ACTORS[actor.kind] : undefined) ?? actor.name;
