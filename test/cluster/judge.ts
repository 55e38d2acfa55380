/** After a trial: compares what was acknowledged with the log, its copy, the transactions and the provider's statement. */
import postgres from "postgres";
import { type AuditEvent, readAuditLog } from "../chaos/audit-log.ts";
import { checkProvider, oddQrEvents } from "../chaos/provider-check.ts";
import { newestSequence, readStationLog, type StoredCommit } from "../chaos/station-log-read.ts";
import type { ClusterWorld } from "./cluster-world.ts";
import type { EndedCollection, History } from "./history.ts";
import { CURRENCY, wrongAnswers } from "./wrong-answers.ts";

/** One row of `transactions`. */
export interface Sale {
  readonly transaction_id: string;
  readonly intent_id: string;
  readonly order_id: string;
  readonly route: string;
  readonly amount_minor: string;
  readonly currency: string;
  readonly reference: string;
}

/** One row of `orders`. */
export interface StoredOrder {
  readonly order_id: string;
  readonly station_id: string;
  readonly status: string;
}

export interface Judgement {
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  readonly stuck: readonly string[];
  /** Answers that showed something else than what the cashier collects. */
  readonly wrong: readonly string[];
}

export async function judge(world: ClusterWorld, history: History): Promise<Judgement> {
  const sql = postgres(world.postgres.url, { max: 2, onnotice: () => undefined });
  try {
    const sales = await sql<Sale[]>`
      select transaction_id, intent_id, order_id, route, amount_minor, currency, reference from transactions`;
    const orders = await sql<StoredOrder[]>`
      select order_id, station_id, status from orders
      where station_id = any(${world.stations.map(({ stationId }) => stationId)}::bigint[])`;
    const qrs = await sql<{ intent_id: string; qr_payload: string }[]>`
      select intent_id, qr_payload from provider_payments`;
    const events = await readAuditLog(sql);
    const logs = new Map<number, readonly StoredCommit[]>();
    for (const { stationId } of world.stations)
      logs.set(stationId, await readStationLog(world.bus, stationId, world.logs));
    const { ended } = history;
    const lost = [
      ...ended.flatMap((one) => missingSale(one, sales)),
      ...wrongOrders(ended, orders),
      ...ended.flatMap((one) => missingEvents(one, eventsOf(one, events))),
      ...losses(events),
      ...behind(await copiedSequences(sql), await newestSequences(world)),
      // Each payment that the provider took is settled once, or is one issue.
      ...(world.provider === undefined ? [] : (await checkProvider(sql, world.provider)).complaints),
    ];
    const doubled = [
      ...doubledSales(ended, sales),
      ...ended.flatMap((one) => extraEvents(one, eventsOf(one, events))),
      ...unnamed(ended, { orders, events }),
    ];
    const payloads = new Map(qrs.map(({ intent_id, qr_payload }) => [Number(intent_id), qr_payload]));
    const wrong = wrongAnswers(history, payloads);
    return { lost, doubled, stuck: [...history.stuck, ...unfinished(logs)], wrong };
  } finally {
    await sql.end();
  }
}

/** The events of the audit copy, by station. */
type AuditLog = ReadonlyMap<number, readonly AuditEvent[]>;

function eventsOf({ stationId, intentId }: EndedCollection, events: AuditLog): string[] {
  return (events.get(stationId) ?? []).flatMap((event) => (event.intentId === intentId ? [event.type] : []));
}

/** A sentence where the transaction that an answer named is missing, or has another sum, route or reference than the collection. */
export function missingSale(ended: EndedCollection, sales: readonly Sale[]): string[] {
  const { end, orderId, intentId, transactionId, route, amountMinor, reference } = ended;
  if (end !== "paid") return [];
  const found = sales.find((sale) => Number(sale.transaction_id) === transactionId);
  if (found === undefined || Number(found.intent_id) !== intentId || Number(found.order_id) !== orderId)
    return [`Order ${orderId}: transaction ${transactionId} was acknowledged and is not there.`];
  const wanted = `${amountMinor} ${CURRENCY} by ${route} "${reference}"`;
  const stored = `${found.amount_minor} ${found.currency} by ${found.route} "${found.reference}"`;
  return stored === wanted ? [] : [`Order ${orderId} of ${wanted}: its transaction has ${stored}.`];
}

/** A sentence for each order that was acknowledged as paid or voided and is not. */
export function wrongOrders(ended: readonly EndedCollection[], orders: readonly StoredOrder[]): string[] {
  const statuses = new Map(orders.map(({ order_id, status }) => [Number(order_id), status]));
  return ended.flatMap(({ orderId, end }) => {
    const wanted = end === "paid" ? "paid" : "voided";
    const found = statuses.get(orderId) ?? "not there";
    return found === wanted ? [] : [`Order ${orderId} was ${wanted} and is ${found}.`];
  });
}

/** `happened` are the types of the intent's events in the audit copy. */
export function missingEvents({ intentId, events }: EndedCollection, happened: readonly string[]): string[] {
  return surplus(events, happened).map(
    (type) => `Intent ${intentId}: ${type} was acknowledged and is not in the audit copy.`,
  );
}

/** A sentence for each event that no acknowledged step explains, for example the second one of a single report. */
export function extraEvents({ intentId, route, events }: EndedCollection, happened: readonly string[]): string[] {
  // The provider may report more than what the cashier is shown.
  const extra = route === "dynamic_qr" ? oddQrEvents(happened, new Set(events)) : surplus(happened, events);
  return extra.map((type) => `Intent ${intentId}: the audit copy has ${type}, and no step was acknowledged for it.`);
}

/** The items that are in the first list more often than in the second one. */
function surplus(items: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return items.filter((item) => {
    const at = left.indexOf(item);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

/** What the product itself recorded as lost or wrong. */
const LOSSES: ReadonlySet<string> = new Set(["log_lost", "audit_gap", "settlement_conflict"]);

export function losses(events: AuditLog): string[] {
  return [...events].flatMap(([stationId, ofStation]) =>
    ofStation.flatMap(({ type, version }) =>
      LOSSES.has(type) ? [`Station ${stationId}: the audit copy has ${type} at version ${version}.`] : [],
    ),
  );
}

export function doubledSales(ended: readonly EndedCollection[], sales: readonly Sale[]): string[] {
  const paid = new Set(ended.flatMap(({ end, orderId }) => (end === "paid" ? [orderId] : [])));
  const byOrder = Map.groupBy(sales, ({ order_id }) => Number(order_id));
  return [...byOrder].flatMap(([orderId, ofOrder]) => {
    if (ofOrder.length > 1) return [`Order ${orderId} has ${ofOrder.length} transactions.`];
    return paid.has(orderId) ? [] : [`Order ${orderId} has a transaction that no answer to a cashier names.`];
  });
}

/** Orders and collections that were made, and that no answer to a cashier names. */
export function unnamed(
  ended: readonly EndedCollection[],
  { orders, events }: { readonly orders: readonly StoredOrder[]; readonly events: AuditLog },
): string[] {
  const orderIds = new Set(ended.map(({ orderId }) => orderId));
  const intentIds = new Set(ended.map(({ intentId }) => intentId));
  const created = [...events.values()].flat().filter(({ type }) => type === "intent_created");
  return [
    ...orders
      .filter(({ order_id }) => !orderIds.has(Number(order_id)))
      .map(({ order_id, station_id }) => `No answer to a cashier names order ${order_id} of station ${station_id}.`),
    ...created
      .filter(({ intentId }) => !intentIds.has(intentId ?? 0))
      .map(({ intentId }) => `No answer to a cashier names intent ${intentId}.`),
  ];
}

/** The part of a commit that shows whether the station's log is complete and at rest. */
export type LoggedCommit = Pick<StoredCommit, "version"> & {
  readonly state: { readonly intent: { readonly intentId: number; readonly status: string } | null };
};

/** `logs` are the commits that the log still has of each station, oldest first. */
export function unfinished(logs: ReadonlyMap<number, readonly LoggedCommit[]>): string[] {
  const sentences: string[] = [];
  for (const [stationId, log] of logs) {
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

/** Both maps have the sequence of each log by its name: of its copy, and of its newest commit. */
export function behind(copied: ReadonlyMap<string, number>, newest: ReadonlyMap<string, number>): string[] {
  return [...newest].flatMap(([name, sequence]) => {
    const at = copied.get(name) ?? 0;
    return at === sequence ? [] : [`The audit copy of ${name} is at ${at} and the log at ${sequence}.`];
  });
}

async function copiedSequences(sql: postgres.Sql): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ stream: string; sequence: string }[]>`select stream, sequence from audit_position`;
  return new Map(rows.map(({ stream, sequence }) => [stream, Number(sequence)]));
}

async function newestSequences({ logs, bus }: ClusterWorld): Promise<ReadonlyMap<string, number>> {
  const newest = new Map<string, number>();
  for (const log of logs.all) newest.set(log.name, await newestSequence(bus, log));
  return newest;
}
