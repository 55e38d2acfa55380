/**
 * Money as a provider names it, read as far as it can be read. Nothing that is signed is refused for its shape: what
 * cannot be read is missing, does not match, and becomes an issue with the provider's own words.
 */
import { amountFitsWire, parseAmount } from "../../../machines/currency.ts";
import { comparableReference } from "../../bus/messages/intents.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { AssertedMoney, CallbackEvent } from "./adapter.ts";

/** A currency's code; whether it is one that is in use is of no concern here. */
const CURRENCY = /^[A-Z]{3}$/;

/** The fields of an object as they came, under the names that this product uses. */
export interface SaidMoney {
  readonly reference: unknown;
  readonly providerReference: unknown;
  readonly account: unknown;
  readonly amount: unknown;
  readonly currency: unknown;
}

/** `words` is what the provider has said, whole, for the evidence. */
export function readMoney(said: SaidMoney, words: unknown): AssertedMoney {
  const currency = typeof said.currency === "string" && CURRENCY.test(said.currency) ? said.currency : null;
  return {
    reference: textOf(said.reference, PROVIDER_LIMITS.saidReferenceCharacters),
    providerReference: nameOf(said.providerReference),
    account: textOf(said.account, PROVIDER_LIMITS.saidReferenceCharacters),
    amountMinor: currency === null ? null : amountOf(said.amount, currency),
    currency,
    said: JSON.stringify(words) ?? "",
  };
}

/** Signed bytes of which nothing can be read. They may speak of money, so a person looks at them. */
export function unreadable(body: Uint8Array): CallbackEvent {
  // PostgreSQL's text has no NUL; what is no UTF-8 becomes the replacement character.
  const said = new TextDecoder().decode(body).replaceAll("\0", "\uFFFD");
  const nothing = { reference: "", providerReference: "", account: "", amountMinor: null, currency: null };
  return { eventId: null, type: "unreadable", effect: { kind: "paid", money: { ...nothing, said } } };
}

/** The text itself, or an empty one where there is none, or one that is too long to be what it should be. */
export function textOf(value: unknown, maxCharacters: number): string {
  return typeof value === "string" && value.length <= maxCharacters ? value : "";
}

/** The fields of a JSON object; of anything else there are none. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** An event's own name: its id, or null, and its kind, of which the record keeps the beginning; undefined without a kind. */
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

/** Null where the amount is none of this currency, or one that the contract cannot write: it is never cut. */
function amountOf(amount: unknown, currency: string): string | null {
  const minor = typeof amount === "string" ? parseAmount(amount, currency) : undefined;
  return minor !== undefined && amountFitsWire(minor, currency) ? minor.toString() : null;
}
