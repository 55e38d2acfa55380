/** The words that every page has. */
import { dictionary } from "./language.ts";

export const sharedWords = dictionary({
  en: {
    language: "Language",
    cancel: "Cancel",
    close: "Close",
    confirm: "Confirm",
    retry: "Try again",
    loading: "Loading",
    offline: "No connection. Buttons work again when it is back.",
    requestNumber: "Request",
    age: (seconds: number) => (seconds < 60 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`),
    required: "Fill this in.",
    email: "E-mail address",
    password: "Password",
    showPassword: "Show the password",
    signIn: "Sign in",
    signOut: "Sign out",
  },
  de: {
    language: "Sprache",
    cancel: "Abbrechen",
    close: "Schließen",
    confirm: "Bestätigen",
    retry: "Noch einmal versuchen",
    loading: "Wird geladen",
    offline: "Keine Verbindung. Die Knöpfe gehen wieder, sobald sie da ist.",
    requestNumber: "Anfrage",
    age: (seconds: number) => (seconds < 60 ? `vor ${seconds} s` : `vor ${Math.floor(seconds / 60)} min`),
    required: "Bitte ausfüllen.",
    email: "E-Mail-Adresse",
    password: "Passwort",
    showPassword: "Passwort zeigen",
    signIn: "Anmelden",
    signOut: "Abmelden",
  },
});
