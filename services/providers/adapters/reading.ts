/**
 * Reads what owners and providers send. The service refuses no signed callback for its shape. A field that cannot be
 * read counts as missing and matches nothing, so the payment becomes an issue with the provider's text as evidence.
 */
import type { z } from "zod";
import { amountFitsWire, parseAmount } from "../../../machines/currency.ts";
import { FOR_FIELD_ERRORS } from "../../bus/field-errors.ts";
import { comparableReference } from "../../bus/messages/intents.ts";
import { invalidRequest } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { AssertedPayment, CallbackEvent } from "./adapter.ts";

const CURRENCY = /^[A-Z]{3}$/;

/** The fields of a provider's object, unchecked, under this product's names. */
interface UncheckedFields {
  readonly reference: unknown;
  readonly providerReference: unknown;
  readonly account: unknown;
  readonly amount: unknown;
  readonly currency: unknown;
}

/** `source` is all that the provider has sent about the payment, for the evidence. */
export function readAssertedPayment(fields: UncheckedFields, source: unknown): AssertedPayment {
  const currency = typeof fields.currency === "string" && CURRENCY.test(fields.currency) ? fields.currency : null;
  return {
    reference: textOf(fields.reference, PROVIDER_LIMITS.assertedReferenceCharacters),
    providerReference: nameOf(fields.providerReference),
    account: textOf(fields.account, PROVIDER_LIMITS.assertedReferenceCharacters),
    amountMinor: currency === null ? null : amountOf(fields.amount, currency),
    currency,
    said: JSON.stringify(source) ?? "",
  };
}

/** The event of signed bytes that cannot be read. They may be about money, so they become an issue for a person. */
export function unreadable(body: Uint8Array): CallbackEvent {
  // PostgreSQL stores no NUL in text. The decoder puts the replacement character for bytes that are not UTF-8.
  const said = new TextDecoder().decode(body).replaceAll("\0", "\uFFFD");
  const nothing = { reference: "", providerReference: "", account: "", amountMinor: null, currency: null };
  return { eventId: null, type: "unreadable", effect: { kind: "paid", money: { ...nothing, said } } };
}

/** The text, or an empty text where the value is no text or is too long. */
function textOf(value: unknown, maxCharacters: number): string {
  return typeof value === "string" && value.length <= maxCharacters ? value : "";
}

/** The fields of a JSON object. Any other value has no fields. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** An event's id (or null) and the first characters of its type. Undefined without a type. */
export function nameOfEvent(
  id: unknown,
  type: unknown,
): { readonly eventId: string | null; readonly type: string } | undefined {
  if (typeof type !== "string" || type === "") return undefined;
  const eventId = textOf(id, PROVIDER_LIMITS.eventIdCharacters);
  return {
    eventId: eventId === "" ? null : eventId,
    type: type.slice(0, PROVIDER_LIMITS.eventTypeCharacters).toWellFormed(),
  };
}

/** The provider's reference of the payment, normalized so that equal references are equal strings. */
function nameOf(reference: unknown): string {
  const { providerReferenceCharacters } = PROVIDER_LIMITS;
  return textOf(comparableReference(textOf(reference, providerReferenceCharacters)), providerReferenceCharacters);
}

/**
 * Null where the text is no amount of this currency, or does not fit the contract's pattern. No digit is ever cut off.
 */
function amountOf(amount: unknown, currency: string): string | null {
  const minor = typeof amount === "string" ? parseAmount(amount, currency) : undefined;
  return minor !== undefined && amountFitsWire(minor, currency) ? minor.toString() : null;
}

/** Undefined when the bytes are not JSON in UTF-8, or hold a NUL or a lone surrogate, which PostgreSQL cannot store. */
export function parseJsonBody(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body), (name, value: unknown) => {
      if (isStorable(name) && (typeof value !== "string" || isStorable(value))) return value;
      throw new SyntaxError("The text cannot be stored.");
    });
  } catch {
    return undefined;
  }
}

function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}

/** Throws `RefusedError` `invalid_request` with a pointer for each field, below `/settings`. */
export function checkedSettings<TSchema extends z.ZodType>(schema: TSchema, settings: unknown): z.infer<TSchema> {
  const parsed = schema.safeParse(settings, FOR_FIELD_ERRORS);
  if (parsed.success) return parsed.data;
  const refusal = invalidRequest(parsed.error);
  const errors = (refusal.errors ?? []).map((found) => ({ ...found, pointer: `/settings${found.pointer}` }));
  throw new RefusedError({ ...refusal, errors });
}
