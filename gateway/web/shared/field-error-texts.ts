/** Why the service refuses a field. When a language lacks a code, this file does not compile. */
import type { Failure } from "./failures.ts";
import { dictionary } from "./language.ts";
import type { FieldErrorCode } from "./operations.ts";

type Texts = Readonly<Record<FieldErrorCode, (limit: number) => string>>;

const texts = dictionary({
  en: {
    missing: () => "Fill this in.",
    unknown_field: () => "This is not asked for here.",
    wrong_type: () => "This is not what is asked for here.",
    wrong_format: () => "Check how this is written.",
    not_one_of: () => "Choose one of what is offered.",
    too_short: (limit: number) => `This needs at least ${limit} characters or entries.`,
    too_long: (limit: number) => `This may have at most ${limit} characters or entries.`,
    too_small: (limit: number) => `This must be at least ${limit}.`,
    too_large: (limit: number) => `This may be at most ${limit}.`,
    not_text: () => "This has characters that are no text.",
    not_json: () => "This could not be read.",
    does_not_fit: () => "This does not fit what was chosen or entered elsewhere.",
    unknown_currency: () => "There is no such currency. Use a code such as EUR.",
    unknown_time_zone: () => "There is no such time zone. Use a name such as Europe/Berlin.",
    not_of_currency: () => "This amount does not fit the currency.",
    amount_too_large: () => "This amount is too large.",
    not_in_catalogue: () => "This item is not in the catalogue any more.",
    ends_before_start: () => "The end must not be before the beginning.",
    period_too_long: (limit: number) => `Choose ${limit} days at most.`,
    wrong_password: () => "This is not your password.",
    invalid: () => "This is not valid here.",
  } satisfies Texts,
  de: {
    missing: () => "Bitte ausfüllen.",
    unknown_field: () => "Danach wird hier nicht gefragt.",
    wrong_type: () => "Das ist nicht, wonach hier gefragt wird.",
    wrong_format: () => "Prüfen Sie die Schreibweise.",
    not_one_of: () => "Wählen Sie etwas, das angeboten wird.",
    too_short: (limit: number) => `Das braucht mindestens ${limit} Zeichen oder Einträge.`,
    too_long: (limit: number) => `Das darf höchstens ${limit} Zeichen oder Einträge haben.`,
    too_small: (limit: number) => `Das muss mindestens ${limit} sein.`,
    too_large: (limit: number) => `Das darf höchstens ${limit} sein.`,
    not_text: () => "Das hat Zeichen, die kein Text sind.",
    not_json: () => "Das war nicht lesbar.",
    does_not_fit: () => "Das passt nicht zu dem, was sonst gewählt oder eingegeben ist.",
    unknown_currency: () => "Diese Währung gibt es nicht. Nehmen Sie ein Kürzel wie EUR.",
    unknown_time_zone: () => "Diese Zeitzone gibt es nicht. Nehmen Sie einen Namen wie Europe/Berlin.",
    not_of_currency: () => "Dieser Betrag passt nicht zur Währung.",
    amount_too_large: () => "Dieser Betrag ist zu groß.",
    not_in_catalogue: () => "Dieser Artikel ist nicht mehr im Katalog.",
    ends_before_start: () => "Das Ende darf nicht vor dem Anfang liegen.",
    period_too_long: (limit: number) => `Wählen Sie höchstens ${limit} Tage.`,
    wrong_password: () => "Das ist nicht Ihr Passwort.",
    invalid: () => "Das ist hier nicht gültig.",
  } satisfies Texts,
});

/** The service's error for a field of the request, found by its JSON pointer; null without one. */
export function fieldFault(failure: Failure | null, pointer: string): string | null {
  const found = failure?.errors?.find((error) => error.pointer === pointer);
  if (found === undefined) return null;
  // A newer service may have further codes.
  const known = texts() as Partial<Texts>;
  return (known[found.code] ?? texts().invalid)(found.limit ?? 0);
}
