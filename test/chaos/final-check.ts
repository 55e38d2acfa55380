/**
 * After the kills, compares every answer to the clients with the log, the audit copy and the database. Each difference is one
 * sentence.
 */
import postgres from "postgres";
import { formatAmount } from "../../machines/currency.ts";
import { type AuditEvent, readAuditLog } from "./audit-log.ts";
import type { Collection } from "./collection-facts.ts";
import { checkProvider, checkQrCollections, type ProviderCheck } from "./provider-check.ts";
import type { ProviderWorld } from "./provider-world.ts";
import { isQr } from "./qr-plan.ts";
import { newestSequence, readStationLog, type StoredCommit } from "./station-log-read.ts";

export interface FinalCheck {
  readonly complaints: readonly string[];
  readonly paidOrders: number;
  readonly unpaid: Readonly<Record<string, number>>;
  readonly sumMinor: bigint;
  readonly commits: number;
  readonly provider: Omit<ProviderCheck, "complaints">;
}

export async function runFinalCheck(world: ProviderWorld, collections: readonly Collection[]): Promise<FinalCheck> {
  const sql = postgres(world.system.database.url, { max: 2, onnotice: () => undefined });
  try {
    const money = await checkPayments(sql, collections);
    const auditLog = await readAuditLog(sql);
    const { complaints: ofProvider, ...provider } = await checkProvider(sql, world.provider);
    const complaints = [
      ...money.complaints,
      ...ofProvider,
      ...(await checkOutbox(sql)),
      ...(await checkCopy(sql, world)),
    ];
    for (const { stationId } of world.stations) {
      const log = await readStationLog(world.system.bus, stationId);
      const own = collections.filter(({ station }) => station.stationId === stationId);
      complaints.push(...checkLog(stationId, log, auditLog.get(stationId) ?? []));
      complaints.push(...checkCollections(own, auditLog.get(stationId) ?? []));
      complaints.push(...checkQrCollections(own, auditLog.get(stationId) ?? []));
      complaints.push(...checkKnownOrders(stationId, log.at(-1), own));
    }
    return { ...money, complaints, provider, commits: await newestSequence(world.system.bus) };
  } finally {
    await sql.end();
  }
}

interface OrderRow {
  readonly order_id: string;
  readonly status: string;
  readonly total_minor: string;
  readonly transactions: readonly { transaction_id: number; intent_id: number; amount: number; reference: string }[];
}

/** Checks that every order is paid exactly once, or unpaid for the reason that the clients know. */
async function checkPayments(sql: postgres.Sql, collections: readonly Collection[]) {
  const rows = await sql<OrderRow[]>`
    select o.order_id, o.status, o.total_minor,
      coalesce((select json_agg(json_build_object('transaction_id', t.transaction_id, 'intent_id', t.intent_id,
        'amount', t.amount_minor, 'reference', t.reference)) from transactions t where t.order_id = o.order_id), '[]')
      as transactions
    from orders o`;
  const byOrder = new Map(collections.map((collection) => [collection.orderId, collection]));
  const complaints: string[] = [];
  const unpaid: Record<string, number> = {};
  let sumMinor = 0n;
  let paidOrders = 0;
  if (rows.length !== collections.length) {
    complaints.push(`There are ${rows.length} orders; the cashier opened ${collections.length}.`);
  }
  for (const { order_id, status, total_minor, transactions } of rows) {
    const known = byOrder.get(Number(order_id));
    const title = `Order ${order_id} (${known?.plan.ending})`;
    if (status !== known?.orderStatus) complaints.push(`${title} is ${status} and not ${known?.orderStatus}.`);
    if (transactions.length !== (status === "paid" ? 1 : 0)) {
      complaints.push(`${title} is ${status} with ${transactions.length} transactions.`);
    }
    if (status !== "paid") unpaid[known?.plan.ending ?? "?"] = (unpaid[known?.plan.ending ?? "?"] ?? 0) + 1;
    else {
      paidOrders += 1;
      sumMinor += BigInt(total_minor);
    }
    const [sale] = transactions;
    if (sale === undefined || known?.sale === undefined || known.sale === null) continue;
    const answered = { ...known.sale, intentId: known.intentId };
    const found = {
      transactionId: sale.transaction_id,
      amount: formatAmount(BigInt(sale.amount), "EUR"),
      reference: sale.reference,
      intentId: sale.intent_id,
    };
    if (!same(answered, found)) complaints.push(`${title} was answered as ${text(answered)} and is ${text(found)}.`);
  }
  const [total] = await sql<{ sum: string; count: number }[]>`
    select coalesce(sum(amount_minor), 0)::text as sum, count(*)::int as count from transactions`;
  if (BigInt(total?.sum ?? "0") !== sumMinor || total?.count !== paidOrders) {
    complaints.push(`The transactions are ${text(total)}; the paid orders are ${paidOrders} worth ${sumMinor}.`);
  }
  return { complaints, paidOrders, unpaid, sumMinor };
}

async function checkOutbox(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ outbox_id: string; key: string; failed_reason: string | null }[]>`
    select outbox_id, key, failed_reason from outbox where delivered_at is null or failed_reason is not null`;
  return rows.map((row) => `The outbox still has row ${row.outbox_id} of ${row.key} (${row.failed_reason}).`);
}

async function checkCopy(sql: postgres.Sql, world: ProviderWorld): Promise<string[]> {
  const [position] = await sql<{ sequence: string }[]>`select sequence from audit_position`;
  const newest = await newestSequence(world.system.bus);
  const gaps = await sql<{ station_id: string }[]>`select station_id from station_events where type = 'audit_gap'`;
  const complaints = gaps.map((gap) => `The audit copy has a gap at station ${gap.station_id}.`);
  if (Number(position?.sequence) !== newest) {
    complaints.push(`The audit copy is at ${position?.sequence} and the log at ${newest}.`);
  }
  return complaints;
}

/** Checks that the log's versions have no gap and no fork, that the copy equals the log, and that nothing is incomplete. */
function checkLog(stationId: number, log: readonly StoredCommit[], auditLog: readonly AuditEvent[]): string[] {
  const complaints: string[] = [];
  const first = log[0]?.version ?? 0;
  const versions = log.map(({ version }) => version);
  if (
    !same(
      versions,
      versions.map((_, index) => first + index),
    )
  ) {
    complaints.push(`Station ${stationId} counts its commits ${text(versions)}.`);
  }
  const copied = [...new Set(auditLog.map(({ version }) => version))];
  if (
    !same(
      copied,
      Array.from({ length: versions.at(-1) ?? 0 }, (_, index) => index + 1),
    )
  ) {
    complaints.push(
      `Of station ${stationId}, whose newest commit is ${versions.at(-1)}, the copy has ${text(copied)}.`,
    );
  }
  const stored = log.flatMap((commit) => commit.events.map(({ type }) => `${commit.version} ${type}`));
  const copiedSince = auditLog
    .filter(({ version }) => version >= first)
    .map(({ version, type }) => `${version} ${type}`);
  if (!same(stored, copiedSince))
    complaints.push(`Station ${stationId} committed ${text(stored)} and the copy has ${text(copiedSince)}.`);
  const intent = log.at(-1)?.state.intent;
  if (intent !== null) complaints.push(`Station ${stationId} still has intent ${intent?.intentId}, ${intent?.status}.`);
  return complaints;
}

const ENDINGS = new Set(["intent_succeeded", "intent_cancelled", "intent_expired"]);

/** Checks that each acknowledged step happened once. */
function checkCollections(collections: readonly Collection[], auditLog: readonly AuditEvent[]): string[] {
  const complaints: string[] = [];
  for (const { intentId, events, intentStatus, plan } of collections) {
    if (isQr(plan)) continue;
    const happened = auditLog.filter((event) => event.intentId === intentId).map(({ type }) => type);
    const title = `Intent ${intentId} (${plan.ending})`;
    if (!same(happened.toSorted(), [...events].toSorted())) {
      complaints.push(`${title}: acknowledged were ${text(events)}, and the audit log has ${text(happened)}.`);
    }
    const endings = happened.filter((type) => ENDINGS.has(type));
    if (!same(endings, [`intent_${intentStatus}`])) complaints.push(`${title} ended as ${text(endings)}.`);
  }
  const known = new Set(collections.map(({ intentId }) => intentId));
  for (const { type, intentId } of auditLog) {
    if (type === "settlement_conflict") complaints.push(`Intent ${intentId} was settled after it had ended.`);
    if (type === "intent_created" && intentId !== null && !known.has(intentId)) {
      complaints.push(`Intent ${intentId} was created, and no client got the answer.`);
    }
  }
  return complaints;
}

/** The number of a station's newest orders that are checked. The station stores eight. */
const NEWEST_ORDERS = 4;

/** Checks that the settlement service's writes about the newest orders have reached the station. */
function checkKnownOrders(
  stationId: number,
  newest: StoredCommit | undefined,
  collections: readonly Collection[],
): string[] {
  const complaints: string[] = [];
  const known = new Map(newest?.state.knownOrders.map(({ orderId, status }) => [orderId, status]));
  for (const { orderId, orderStatus } of collections.slice(-NEWEST_ORDERS)) {
    if (known.get(orderId) === orderStatus) continue;
    complaints.push(`Station ${stationId} takes order ${orderId} for ${known.get(orderId)}; it is ${orderStatus}.`);
  }
  return complaints;
}

function same(a: unknown, b: unknown): boolean {
  return text(a) === text(b);
}

/** Sorts the keys, so that equal facts are equal texts. */
function text(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
