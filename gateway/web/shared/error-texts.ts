/** The sentence and the next step of each failure, in the person's language. A language that lacks a code does not compile. */
import { de } from "./error-texts.de.ts";
import { en } from "./error-texts.en.ts";
import type { ErrorText, ErrorTexts, Failure } from "./failures.ts";
import { language } from "./language.ts";

/** A code of a newer service has the text of `internal_error`. */
export function errorText({ code }: Pick<Failure, "code">): ErrorText {
  const texts = language.value === "de" ? de : en;
  return (texts as Partial<ErrorTexts>)[code] ?? texts.internal_error;
}
