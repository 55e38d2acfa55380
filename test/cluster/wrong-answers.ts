/** Finds the answers of a trial that show another amount, currency or QR than the cashier's collection has. */
import { formatAmount } from "../../machines/currency.ts";
import type { EndedCollection, Fetched, History, Shown } from "./history.ts";

/** Of all stations of a trial. */
export const CURRENCY = "EUR";

/** The statuses that each state of a display may have; empty while it shows no collection. */
const STATUSES: Readonly<Record<string, readonly string[]>> = {
  idle: [""],
  total: ["", "created", "presented", "processing"],
  qr: ["presented"],
  paid: ["succeeded"],
};

/** `qrPayloads` are those that the provider has returned, by intent. */
export function wrongAnswers(history: History, qrPayloads: ReadonlyMap<number, string>): string[] {
  const byOrder = new Map(history.ended.map((one) => [keyOf(one), one]));
  const sentences = [
    ...history.shown.flatMap((one) => wrongShown(one, byOrder.get(keyOf(one)), qrPayloads)),
    ...history.fetched.flatMap(wrongFetched),
  ];
  // A display polls again and again, so the same error would be listed many times.
  return [...new Set(sentences)];
}

const keyOf = ({ stationId, orderDisplayNumber }: Pick<Shown, "stationId" | "orderDisplayNumber">): string =>
  `${stationId}:${orderDisplayNumber}`;

function wrongShown(
  shown: Shown,
  collection: EndedCollection | undefined,
  qrPayloads: ReadonlyMap<number, string>,
): string[] {
  const { stationId, gateway, state, orderDisplayNumber, amount, currency, qrPayload, intentStatus } = shown;
  const what = `${gateway} showed "${state}" of order ${orderDisplayNumber} at station ${stationId}`;
  const complaints: string[] = [];
  if (STATUSES[state]?.includes(intentStatus) !== true)
    complaints.push(`${what} with the status "${intentStatus}" of its collection.`);
  if ((state === "idle") !== (orderDisplayNumber === 0)) complaints.push(`${what}.`);
  if (orderDisplayNumber > 0 && collection === undefined)
    return [...complaints, `${what}, which no answer to a cashier names.`];
  const wanted = formatAmount(BigInt(collection?.amountMinor ?? 0), CURRENCY);
  if (amount !== wanted || currency !== CURRENCY)
    complaints.push(`${what} with ${amount} ${currency} instead of ${wanted} ${CURRENCY}.`);
  const isQr = collection?.route === "dynamic_qr" && intentStatus === "presented";
  if (isQr !== (state === "qr")) complaints.push(`${what}, which is ${intentStatus} by ${collection?.route}.`);
  const payload = state === "qr" ? (qrPayloads.get(collection?.intentId ?? 0) ?? "none") : "";
  if (qrPayload !== payload) complaints.push(`${what} with the QR "${qrPayload}" instead of "${payload}".`);
  return complaints;
}

function wrongFetched({ stationId, gateway, assignment, handed }: Fetched): string[] {
  if (assignment === undefined || assignment.intentId !== handed.intentId) return [];
  const { amount, currency } = assignment;
  const wanted = formatAmount(BigInt(handed.amountMinor), CURRENCY);
  if (amount === wanted && currency === CURRENCY) return [];
  const what = `${gateway} gave the companion of station ${stationId} intent ${handed.intentId}`;
  return [`${what} with ${amount} ${currency} instead of ${wanted} ${CURRENCY}.`];
}
