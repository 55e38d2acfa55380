/** After a trial: compares what was acknowledged with the log, its copy, the transactions and the provider's statement. */
import postgres from "postgres";
import { readAuditLog } from "../chaos/audit-log.ts";
import { checkProvider } from "../chaos/provider-check.ts";
import { newestSequence, readStationLog } from "../chaos/station-log-read.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import type { EndedCollection, History } from "./history.ts";

/** One row of `transactions`. */
export interface Sale {
  readonly transaction_id: string;
  readonly intent_id: string;
  readonly order_id: string;
  readonly route: string;
  readonly amount_minor: string;
  readonly currency: string;
}

/** Of all stations of a trial. */
const CURRENCY = "EUR";

export interface Judgement {
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  readonly stuck: readonly string[];
}

export async function judge(world: ClusterWorld, history: History): Promise<Judgement> {
  const sql = postgres(world.postgres.url, { max: 2, onnotice: () => undefined });
  try {
    const sales = await sql<Sale[]>`
      select transaction_id, intent_id, order_id, route, amount_minor, currency from transactions`;
    const auditLog = await readAuditLog(sql);
    const lost = [
      ...history.ended.flatMap((one) => missingSale(one, sales)),
      ...history.ended.flatMap((one) => {
        const types = (auditLog.get(one.stationId) ?? []).flatMap(({ intentId, type }) =>
          intentId === one.intentId ? [type] : [],
        );
        const missing = one.events.filter((type) => !types.includes(type));
        return missing.map((type) => `Intent ${one.intentId}: ${type} was acknowledged and is not in the audit copy.`);
      }),
      ...(await behind(world, sql)),
      // Each payment that the provider took is settled once, or is one issue.
      ...(world.provider === undefined ? [] : (await checkProvider(sql, world.provider)).complaints),
    ];
    return { lost, doubled: doubled(history, sales), stuck: [...history.stuck, ...(await unfinished(world))] };
  } finally {
    await sql.end();
  }
}

/** A sentence where the transaction that an answer named is missing, or has another sum or route than the order. */
export function missingSale(ended: EndedCollection, sales: readonly Sale[]): string[] {
  const { end, orderId, intentId, transactionId, route, amountMinor } = ended;
  if (end !== "paid") return [];
  const found = sales.find((sale) => Number(sale.transaction_id) === transactionId);
  if (found === undefined || Number(found.intent_id) !== intentId || Number(found.order_id) !== orderId)
    return [`Order ${orderId}: transaction ${transactionId} was acknowledged and is not there.`];
  const { amount_minor, currency, route: storedRoute } = found;
  if (Number(amount_minor) === amountMinor && currency === CURRENCY && storedRoute === route) return [];
  return [
    `Order ${orderId} of ${amountMinor} ${CURRENCY} by ${route}: its transaction has ${amount_minor} ${currency} by ${storedRoute}.`,
  ];
}

function doubled(history: History, sales: readonly Sale[]): string[] {
  const paid = new Map(history.ended.filter(({ end }) => end === "paid").map((one) => [one.orderId, one]));
  const byOrder = Map.groupBy(sales, ({ order_id }) => Number(order_id));
  return [...byOrder].flatMap(([orderId, ofOrder]) => {
    if (ofOrder.length > 1) return [`Order ${orderId} has ${ofOrder.length} transactions.`];
    return paid.has(orderId) ? [] : [`Order ${orderId} has a transaction that no answer to a cashier names.`];
  });
}

async function unfinished(world: ClusterWorld): Promise<string[]> {
  const sentences: string[] = [];
  for (const { stationId } of world.stations) {
    const log = await readStationLog(world.bus, stationId, world.logs);
    const versions = log.map(({ version }) => version);
    const first = versions[0] ?? 0;
    if (versions.some((version, index) => version !== first + index)) {
      sentences.push(`Station ${stationId} counts its commits ${JSON.stringify(versions)}.`);
    }
    const intent = log.at(-1)?.state.intent;
    if (intent !== null)
      sentences.push(`Station ${stationId} still has intent ${intent?.intentId}, ${intent?.status}.`);
  }
  return sentences;
}

async function behind(world: ClusterWorld, sql: postgres.Sql): Promise<string[]> {
  const positions = await sql<{ stream: string; sequence: string }[]>`select stream, sequence from audit_position`;
  const sentences: string[] = [];
  for (const log of world.logs.all) {
    const copied = Number(positions.find(({ stream }) => stream === log.name)?.sequence ?? 0);
    const newest = await newestSequence(world.bus, log);
    if (copied !== newest) sentences.push(`The audit copy of ${log.name} is at ${copied} and the log at ${newest}.`);
  }
  return sentences;
}
