/** The language that a person has chosen. This file does not track changes; `language.ts` does that for pages with signals. */
export const LANGUAGES = ["en", "de"] as const;
export type Language = (typeof LANGUAGES)[number];

export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = { en: "English", de: "Deutsch" };

const STORED = "dp_language";

/** The language that the person has chosen; otherwise the browser's first language that the pages support. */
export function storedLanguage(): Language {
  const wanted = [stored(), ...navigator.languages].map((tag) => tag.slice(0, 2).toLowerCase());
  return wanted.find((tag): tag is Language => (LANGUAGES as readonly string[]).includes(tag)) ?? "en";
}

/** A browser that forbids storage still shows the page. */
function stored(): string {
  try {
    return localStorage.getItem(STORED) ?? "";
  } catch {
    return "";
  }
}

export function storeLanguage(chosen: Language): void {
  try {
    localStorage.setItem(STORED, chosen);
  } catch {
    // The choice then applies only to this visit.
  }
}

/** The tag for `Intl`: the variant of the language that the browser names, for example `en-GB`. */
export const localeOf = (language: Language): string =>
  navigator.languages.find((tag) => tag.toLowerCase().startsWith(language)) ?? language;

type Word = string | ((...values: never[]) => string);
export type Words = { readonly [name: string]: Word | Words };
/** The same names; the words may differ. */
export type Like<T> = {
  readonly [K in keyof T]: T[K] extends string
    ? string
    : T[K] extends (...values: never[]) => string
      ? T[K]
      : Like<T[K]>;
};
