/** How the reference of a slip is compared with those that have settled an order before. Pure. */
import { createHash } from "node:crypto";
import type { Route } from "../../machines/payment-intent.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";

export interface ComparedReference {
  readonly key: string;
  /** How far back it is compared; undefined is without end. */
  readonly withinHours: number | undefined;
}

/** The routes whose reference names a payment at a terminal; a provider's payment has a key of its own (money-key.ts). */
const COMPARED: Readonly<Record<Route, boolean>> = {
  attested_terminal: true,
  smart_pos: true,
  dynamic_qr: false,
  cash: false,
};

/** Undefined where nothing is compared: another route, or no reference. */
export function comparedReference(route: Route, reference: string): ComparedReference | undefined {
  if (!COMPARED[route] || reference === "") return undefined;
  const letters = asRead(reference);
  if (letters === "") return { key: `sha256:${sha256(reference)}`, withinHours: undefined };
  const isShort = letters.length <= SETTLEMENT_LIMITS.shortReferenceCharacters;
  return {
    key: letters.length > SETTLEMENT_LIMITS.referenceKeyCharacters ? `sha256:${sha256(letters)}` : letters,
    withinHours: isShort ? SETTLEMENT_LIMITS.shortReferenceHours : undefined,
  };
}

/** As a person reads it: neither case, space, width of letters nor characters that are not shown make another reference. */
function asRead(reference: string): string {
  return reference
    .normalize("NFKC")
    .replaceAll(/[\s\p{Cc}\p{Cf}\p{Cs}]/gu, "")
    .toUpperCase();
}

function sha256(text: string): string {
  return createHash("sha256").update(JSON.stringify(text)).digest("hex");
}
