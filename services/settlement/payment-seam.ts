/** The payment seam as the station host calls it (design §2.4), and how it compares the references of slips. */
import { createHash } from "node:crypto";
import type { Route } from "../../machines/payment-intent.ts";
import type * as intents from "../bus/messages/intents.ts";
import type { Handler } from "../bus/operation.ts";
import { storableText } from "../db/stored-text.ts";
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import * as sql from "./sql/payment-seam.ts";

/** Settles an intent once, however often the host asks. One wide log line has the outcome. */
export const settleIntent: Handler<SettlementDeps, typeof intents.settleIntent> = async (deps, request) => {
  // No character in a match key may prevent the end of a settlement.
  const storable = request.moneyKey === undefined ? request : { ...request, moneyKey: storableText(request.moneyKey) };
  const outcome = await sql.settleIntent(deps.database, storable, comparedReference(request.route, request.reference));
  const { intentId, attestationId, stationId, orderId, route, amountMinor, currency, moneyKey } = request;
  const asked = { intentId, attestationId, stationId, orderId, route, amountMinor, currency, moneyKey };
  deps.log.info({ ...asked, ...outcome }, "settlement answered");
  if ("settledAs" in outcome) return { settled: true, transactionId: outcome.settledAs };
  const { refusal: code, usedBy } = outcome;
  const earlier = usedBy === null ? undefined : await sql.findEarlierSale(deps.database, usedBy);
  return earlier === undefined ? { settled: false, code } : { settled: false, code, earlier };
};

/** The routes whose reference names a payment at a terminal. A provider's payment has a match key instead. */
const COMPARED: Readonly<Record<Route, boolean>> = {
  attested_terminal: true,
  smart_pos: true,
  dynamic_qr: false,
  cash: false,
};

/** What the seam compares with the references that have settled an order before; undefined where it compares nothing. */
function comparedReference(route: Route, reference: string): sql.ComparedReference | undefined {
  if (!COMPARED[route] || reference === "") return undefined;
  const letters = normalized(reference);
  if (letters === "") return { key: `sha256:${sha256(reference)}`, withinHours: undefined };
  const isShort = letters.length <= SETTLEMENT_LIMITS.shortReferenceCharacters;
  return {
    key: letters.length > SETTLEMENT_LIMITS.referenceKeyCharacters ? `sha256:${sha256(letters)}` : letters,
    withinHours: isShort ? SETTLEMENT_LIMITS.shortReferenceHours : undefined,
  };
}

/** As a person reads it: letter case, spaces, the width of letters and invisible characters do not count. */
function normalized(reference: string): string {
  return reference
    .normalize("NFKC")
    .replaceAll(/[\s\p{Cc}\p{Cf}\p{Cs}]/gu, "")
    .toUpperCase();
}

function sha256(text: string): string {
  return createHash("sha256").update(JSON.stringify(text)).digest("hex");
}
