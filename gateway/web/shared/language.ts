/**
 * The languages of the pages. Each page has its words in a dictionary. When a language lacks a word, the code does not compile:
 *
 *   const words = dictionary({ en: { greeting: "Hello", items: (count: number) => `${count} items` }, de: { … } });
 *   <p>{words().greeting}</p>
 */
import { effect, signal } from "@preact/signals";
import { type Language, type Like, localeOf, storedLanguage, storeLanguage, type Words } from "./stored-language.ts";

/** A component that reads it, directly or through `words()` or a format, renders again when it changes. */
export const language = signal<Language>(storedLanguage());

effect(() => {
  document.documentElement.lang = language.value;
});

export function chooseLanguage(chosen: Language): void {
  language.value = chosen;
  storeLanguage(chosen);
}

/** The tag for `Intl`. */
export const locale = (): string => localeOf(language.value);

export function dictionary<const T extends Words>(texts: { readonly en: T; readonly de: Like<T> }): () => Like<T> {
  return () => (language.value === "de" ? texts.de : (texts.en as unknown as Like<T>));
}
