/**
 * The languages of the pages. Each page has its words in a dictionary; a word that one language lacks does not compile:
 *
 *   const words = dictionary({ en: { greeting: "Hello", items: (count: number) => `${count} items` }, de: { … } });
 *   <p>{words().greeting}</p>
 */
import { effect, signal } from "@preact/signals";

export const LANGUAGES = ["en", "de"] as const;
export type Language = (typeof LANGUAGES)[number];

const STORED = "dp_language";

function initial(): Language {
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

/** A component that reads it, by `words()` or a format, is drawn again when it changes. */
export const language = signal<Language>(initial());

effect(() => {
  document.documentElement.lang = language.value;
});

export function chooseLanguage(chosen: Language): void {
  language.value = chosen;
  try {
    localStorage.setItem(STORED, chosen);
  } catch {
    // It then counts for this visit.
  }
}

/** The tag for `Intl`: the person's own variant of the language, for example `en-GB`, where the browser names one. */
export function locale(): string {
  const chosen = language.value;
  return navigator.languages.find((tag) => tag.toLowerCase().startsWith(chosen)) ?? chosen;
}

type Word = string | ((...values: never[]) => string);
type Words = { readonly [name: string]: Word | Words };
/** The same names; the words may differ. */
type Like<T> = {
  readonly [K in keyof T]: T[K] extends string
    ? string
    : T[K] extends (...values: never[]) => string
      ? T[K]
      : Like<T[K]>;
};

export function dictionary<const T extends Words>(texts: { readonly en: T; readonly de: Like<T> }): () => Like<T> {
  return () => (language.value === "de" ? texts.de : (texts.en as unknown as Like<T>));
}
