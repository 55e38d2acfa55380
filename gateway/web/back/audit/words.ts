import { dictionary } from "../../shared/language.ts";

export const words = dictionary({
  en: {
    intro:
      "Who did what, when and why, never with a secret. Kept for ever; the log of one station is deleted after some time.",
    log: "Log",
    logs: {
      organization: "Places, devices, people, switches",
      providers: "Providers and issues",
      robotics: "Robotics and webhooks",
      station: "One station",
    },
    at: "At",
    who: "Who",
    what: "What",
    subject: "About",
    data: "Details",
    show: "Show",
    who_filter: "Who or what contains",
    empty: "No entry yet",
    emptyText: "Each action appears here with its first entry.",
    chooseStation: "Choose a station to read what it committed.",
    searched: "The filter searches what is loaded; show more to search on.",
  },
  de: {
    intro:
      "Wer was wann und warum getan hat, nie mit einem Geheimnis. Es bleibt für immer; das Protokoll einer Station wird nach einiger Zeit gelöscht.",
    log: "Protokoll",
    logs: {
      organization: "Orte, Geräte, Personen, Notschalter",
      providers: "Anbieter und Klärungsfälle",
      robotics: "Roboter und Webhooks",
      station: "Eine Station",
    },
    at: "Zeitpunkt",
    who: "Wer",
    what: "Was",
    subject: "Worüber",
    data: "Einzelheiten",
    show: "Zeigen",
    who_filter: "Wer oder was enthält",
    empty: "Noch kein Eintrag",
    emptyText: "Jede Handlung bekommt hier ihren Eintrag.",
    chooseStation: "Wählen Sie eine Station, um ihr Protokoll zu lesen.",
    searched: "Der Filter sucht im Geladenen; zeigen Sie mehr, um weiterzusuchen.",
  },
});
