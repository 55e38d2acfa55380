import { dictionary } from "../../shared/language.ts";

export const words = dictionary({
  en: {
    intro:
      "Proof that a device's software passed the suite, one for each capability. Anyone can verify a certificate offline.",
    provider: "Maker",
    software: "Software",
    capability: "Capability",
    recorded: "Recorded",
    validUntil: "Valid until",
    valid: "valid",
    expired: "expired",
    revoked: "revoked",
    download: "Download",
    downloadName: (id: number) => `certificate-${id}.json`,
    revoke: "Revoke",
    revokeTitle: (what: string) => `Revoke the certificate of ${what}?`,
    revokeText:
      "A revocation is added to the public log, which cannot be undone. The certificate itself never changes.",
    revokedDone: "The certificate is revoked.",
    empty: "No certificate yet",
    emptyText: "Certify a device's software on the command line: npm run cli -- certify",
    by: "by",
  },
  de: {
    intro:
      "Der Nachweis, dass die Software eines Geräts die Prüfung bestanden hat, einer je Fähigkeit. Jeder kann ihn ohne Verbindung prüfen.",
    provider: "Hersteller",
    software: "Software",
    capability: "Fähigkeit",
    recorded: "Ausgestellt",
    validUntil: "Gültig bis",
    valid: "gültig",
    expired: "abgelaufen",
    revoked: "widerrufen",
    download: "Herunterladen",
    downloadName: (id: number) => `zertifikat-${id}.json`,
    revoke: "Widerrufen",
    revokeTitle: (what: string) => `Zertifikat von ${what} widerrufen?`,
    revokeText:
      "Ein Widerruf kommt in das öffentliche Protokoll; das lässt sich nicht rückgängig machen. Das Zertifikat selbst ändert sich nie.",
    revokedDone: "Das Zertifikat ist widerrufen.",
    empty: "Noch kein Zertifikat",
    emptyText: "Zertifizieren Sie die Software eines Geräts auf der Kommandozeile: npm run cli -- certify",
    by: "von",
  },
});
