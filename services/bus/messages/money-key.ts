/**
 * The name of a provider's money. All who ask the payment seam about the same money give it the same name, so that it
 * pays once: a confirmation, a cashier's attestation of a confirmed QR, an operator's attribution.
 */
import { createHash } from "node:crypto";

/** Longer references are named by their hash, so that an index entry with one stays small. */
const REFERENCE_CHARACTERS = 200;

/**
 * The money within its config: the provider's own reference, or, where an older record has none, whatever told of it.
 * Two configs of one organization never hear of the same money, because no two have the same callback secret.
 */
export function moneyName(providerReference: string, otherwise: string): string {
  if (providerReference === "") return `event:${otherwise}`;
  if (providerReference.length <= REFERENCE_CHARACTERS) return `money:${providerReference}`;
  return `money-sha256:${createHash("sha256").update(providerReference).digest("hex")}`;
}

/** The money as the payment seam knows it. */
export function moneyKey(money: { readonly configId: number; readonly name: string }): string {
  return `provider:${money.configId}:${money.name}`;
}
