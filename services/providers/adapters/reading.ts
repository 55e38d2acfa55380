/**
 * Reads what owners and providers send. Nothing that is signed is refused for its shape: what cannot be read is missing,
 * does not match, and becomes an issue with the provider's text as evidence.
 */
import type { z } from "zod";
import { amountFitsWire, parseAmount } from "../../../machines/currency.ts";
import { FOR_FIELD_ERRORS } from "../../bus/field-errors.ts";
import { comparableReference } from "../../bus/messages/intents.ts";
import { invalidRequest } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { AssertedPayment, CallbackEvent } from "./adapter.ts";

/** The shape of a currency's code. */
const CURRENCY = /^[A-Z]{3}$/;

/** The fields of an object as they came, under this product's names. */
interface SaidMoney {
  readonly reference: unknown;
  readonly providerReference: unknown;
  readonly account: unknown;
  readonly amount: unknown;
  readonly currency: unknown;
}

/** `source` is all that the provider has sent about it, for the evidence. */
export function readAssertedPayment(said: SaidMoney, source: unknown): AssertedPayment {
  const currency = typeof said.currency === "string" && CURRENCY.test(said.currency) ? said.currency : null;
  return {
    reference: textOf(said.reference, PROVIDER_LIMITS.saidReferenceCharacters),
    providerReference: nameOf(said.providerReference),
    account: textOf(said.account, PROVIDER_LIMITS.saidReferenceCharacters),
    amountMinor: currency === null ? null : amountOf(said.amount, currency),
    currency,
    said: JSON.stringify(source) ?? "",
  };
}

/** Signed bytes that cannot be read. They may be about money, so they become an issue for a person. */
export function unreadable(body: Uint8Array): CallbackEvent {
  // PostgreSQL's text has no NUL; what is no UTF-8 becomes the replacement character.
  const said = new TextDecoder().decode(body).replaceAll("\0", "\uFFFD");
  const nothing = { reference: "", providerReference: "", account: "", amountMinor: null, currency: null };
  return { eventId: null, type: "unreadable", effect: { kind: "paid", money: { ...nothing, said } } };
}

/** The text itself, or an empty one where there is none, or one that is too long to be what it should be. */
function textOf(value: unknown, maxCharacters: number): string {
  return typeof value === "string" && value.length <= maxCharacters ? value : "";
}

/** The fields of a JSON object; of anything else there are none. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** An event's id, or null, and its type, of which the record keeps the beginning; undefined without a type. */
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

/** The reference that money is known by, in the one way of writing it. */
function nameOf(reference: unknown): string {
  const { providerReferenceCharacters } = PROVIDER_LIMITS;
  return textOf(comparableReference(textOf(reference, providerReferenceCharacters)), providerReferenceCharacters);
}

/** Null where the text is no amount of this currency, or does not fit the contract's pattern: it is never cut. */
function amountOf(amount: unknown, currency: string): string | null {
  const minor = typeof amount === "string" ? parseAmount(amount, currency) : undefined;
  return minor !== undefined && amountFitsWire(minor, currency) ? minor.toString() : null;
}

/** Undefined when the bytes are no JSON in UTF-8, or hold a NUL or half a character, which PostgreSQL cannot store. */
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
