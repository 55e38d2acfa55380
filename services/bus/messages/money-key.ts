/**
 * The name of a provider's money. All who ask the payment seam about the same money give it the same name, so that it
 * pays once: a confirmation, a cashier's attestation of a confirmed QR, an operator's attribution.
 */
import { createHash } from "node:crypto";

/** Longer references are named by their hash, so that an index entry with one stays small. */
const REFERENCE_CHARACTERS = 200;

/** A provider's reference as it is compared: without space around it, in NFC. */
export function comparableReference(providerReference: string): string {
  return providerReference.normalize("NFC").trim();
}

/** The money within its config: the provider's own reference, or, where an older record has none, whatever told of it. */
export function moneyName(providerReference: string, otherwise: string): string {
  const reference = comparableReference(providerReference);
  if (reference === "") return `event:${otherwise}`;
  if (reference.length <= REFERENCE_CHARACTERS) return `money:${reference}`;
  return `money-sha256:${createHash("sha256").update(reference).digest("hex")}`;
}

/**
 * The money as the payment seam is asked about it. Several configs may hear of the same money, so the seam adds its other
 * names, by organization, kind, mode, scheme and each account that it was registered or said with (`names_of_money` in
 * PostgreSQL); what has paid under one of them pays nothing again.
 */
export function moneyKey(money: { readonly configId: number; readonly name: string }): string {
  return `provider:${money.configId}:${money.name}`;
}
