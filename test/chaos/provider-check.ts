/**
 * After the kills, compares the provider's payments, which its statement lists over HTTP, with the records of this service.
 * Each difference is one sentence.
 */
import type postgres from "postgres";
import { parseAmount } from "../../machines/currency.ts";
import { ORDER_OBSTACLES } from "../../machines/payment-intent.ts";
import type { AuditEvent } from "./audit-log.ts";
import type { Collection } from "./collection-facts.ts";
import type { ProviderAccount } from "./provider-account.ts";
import { isQr } from "./qr-plan.ts";

export interface StatementLine {
  readonly line: number;
  readonly payment_id: string;
  readonly reference: string;
  readonly account: string;
  readonly amount: string;
  readonly currency: string;
  readonly paid_at: string;
}

export interface ProviderCheck {
  readonly complaints: readonly string[];
  /** The number of payments in the statement. */
  readonly payments: number;
  readonly paid: number;
  readonly issues: Readonly<Record<string, number>>;
}

export async function checkProvider(sql: postgres.Sql, provider: ProviderAccount): Promise<ProviderCheck> {
  const lines = await readStatement(provider);
  const money = await checkStatement(sql, lines);
  const complaints = [
    ...money.complaints,
    ...(await checkSales(sql, lines)),
    ...(await checkTasks(sql)),
    ...(await checkDeliveries(sql)),
  ];
  return { ...money, complaints, payments: lines.length };
}

/** Reads the provider's statement, in its order. */
export async function readStatement({ url, apiKey }: ProviderAccount): Promise<readonly StatementLine[]> {
  const lines: StatementLine[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const answer = await fetch(`${url}/v1/statement.json?after=${after}&limit=1000`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    const page = (await answer.json()) as { lines: StatementLine[]; next_after: number | null };
    lines.push(...page.lines);
    after = page.next_after;
  }
  return lines;
}

/** Checks that each payment of the provider has paid one order or is one issue: never both, never neither. */
async function checkStatement(sql: postgres.Sql, lines: readonly StatementLine[]) {
  const sales = await sql<{ reference: string }[]>`select reference from transactions where route = 'dynamic_qr'`;
  const raised = await sql<{ kind: string; provider_reference: string }[]>`
    select kind, provider_reference from issues`;
  const complaints: string[] = [];
  const issues: Record<string, number> = {};
  let paid = 0;
  lines.forEach(({ line }, index) => {
    if (line !== index + 1) complaints.push(`The statement's line ${index + 1} is numbered ${line}.`);
  });
  for (const { payment_id } of lines) {
    const own = sales.filter(({ reference }) => reference === payment_id).length;
    const kinds = raised.flatMap(({ kind, provider_reference }) => (provider_reference === payment_id ? [kind] : []));
    paid += own;
    for (const kind of kinds) issues[kind] = (issues[kind] ?? 0) + 1;
    if (own + kinds.length === 1) continue;
    complaints.push(`The provider's money ${payment_id} has ${own} sales and the issues ${JSON.stringify(kinds)}.`);
  }
  const known = new Set(lines.map(({ payment_id }) => payment_id));
  for (const { kind, provider_reference } of raised) {
    if (!known.has(provider_reference))
      complaints.push(`The issue ${kind} names money ${provider_reference}, which is none.`);
  }
  return { complaints, paid, issues };
}

/** Checks that each order that was paid by QR has one payment of its amount, which its transaction names. */
async function checkSales(sql: postgres.Sql, lines: readonly StatementLine[]): Promise<string[]> {
  const sales = await sql<
    { intent_id: string; amount_minor: string; reference: string; paid_reference: string | null }[]
  >`
    select t.intent_id::text, t.amount_minor::text, t.reference, p.paid_reference
    from transactions t left join provider_payments p using (intent_id) where t.route = 'dynamic_qr'`;
  const complaints: string[] = [];
  const byId = new Map(lines.map((line) => [line.payment_id, line]));
  for (const { intent_id, amount_minor, reference, paid_reference } of sales) {
    const line = byId.get(reference);
    const amount = line === undefined ? undefined : parseAmount(line.amount, line.currency);
    if (paid_reference === reference && String(amount) === amount_minor && line?.currency === "EUR") continue;
    complaints.push(
      `Intent ${intent_id} was settled by ${reference} (${amount_minor}), noted as ${paid_reference}; the provider has ${JSON.stringify(line)}.`,
    );
  }
  const noted = await sql<{ intent_id: string; paid_reference: string }[]>`
    select intent_id::text, paid_reference from provider_payments where paid_reference is not null`;
  for (const { intent_id, paid_reference } of noted) {
    if (!byId.has(paid_reference))
      complaints.push(`Intent ${intent_id} is noted as paid by ${paid_reference}, which is no money.`);
  }
  return complaints;
}

/** On a calm system, a due task is claimed within this time. */
const TASK_DUE_MS = 2_000;

/**
 * Checks the open tasks. Only polls and cancellations that the provider has not carried out may be open, because the guest
 * may still pay. None of these is late.
 */
async function checkTasks(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ intent_id: string; kind: string; late_ms: number; attempts: number; is_paid: boolean }[]>`
    select t.intent_id::text, t.kind, t.attempts, p.paid_at is not null as is_paid,
      (extract(epoch from now() - t.due_at) * 1000)::int as late_ms
    from provider_tasks t join provider_payments p using (intent_id) where t.done_at is null`;
  return rows.flatMap(({ intent_id, kind, late_ms, attempts, is_paid }) =>
    (kind === "poll" || kind === "withdraw") && !is_paid && late_ms < TASK_DUE_MS
      ? []
      : [`The task ${kind} of intent ${intent_id} is not done after ${attempts} attempts, and late by ${late_ms} ms.`],
  );
}

/** Checks that every callback of the provider was accepted, and is recorded once. */
async function checkDeliveries(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ event_id: string; last_answer: string | null; attempts: number; recorded: number }[]>`
    select c.event_id, c.last_answer, c.attempts,
      (select count(*)::int from provider_callbacks r where r.event_key = 'id:' || c.event_id) as recorded
    from sandbox_provider_callbacks c
    where c.done_at is null or c.last_answer <> '200'
      or (select count(*) from provider_callbacks r where r.event_key = 'id:' || c.event_id) <> 1`;
  return rows.map(
    ({ event_id, last_answer, attempts, recorded }) =>
      `The callback ${event_id} was answered ${last_answer} at attempt ${attempts} and is recorded ${recorded} times.`,
  );
}

const ENDINGS = new Set([
  "intent_succeeded",
  "intent_cancelled",
  "intent_expired",
  "provider_failed",
  "intent_overtaken",
]);
/** The possible events of a QR collection. Each happens at most once, except those in `REPEATED`. */
const ALLOWED = new Set([
  ...ENDINGS,
  "intent_created",
  "qr_presented",
  "provider_confirmed",
  "late_money_kept",
  "unclear_resolved",
  "end_reported",
  "money_differs",
]);
/** A provider may withdraw a report and send it again. */
const REPEATED = new Set(["unclear_resolved", "money_differs"]);

function endingOf(intentStatus: string, endReason: string | undefined): string {
  if (endReason === undefined || endReason === "") return `intent_${intentStatus}`;
  return ORDER_OBSTACLES.some((obstacle) => obstacle === endReason) ? "intent_overtaken" : "provider_failed";
}

/** Checks that each acknowledged step happened, that each other event is a possible one, and that nothing happened twice. */
export function checkQrCollections(collections: readonly Collection[], auditLog: readonly AuditEvent[]): string[] {
  const complaints: string[] = [];
  for (const { intentId, events, intentStatus, endReason, plan } of collections) {
    if (!isQr(plan)) continue;
    const happened = auditLog.filter((event) => event.intentId === intentId).map(({ type }) => type);
    const title = `Intent ${intentId} (${plan.scenario}, ${plan.ending})`;
    const missing = events.filter((type) => !happened.includes(type));
    const odd = happened.filter(
      (type, index) => !ALLOWED.has(type) || (!REPEATED.has(type) && happened.indexOf(type) !== index),
    );
    if (missing.length > 0) complaints.push(`${title} lacks ${missing.join(", ")}: ${happened.join(", ")}.`);
    if (odd.length > 0) complaints.push(`${title} has ${odd.join(", ")}: ${happened.join(", ")}.`);
    const endings = happened.filter((type) => ENDINGS.has(type));
    const expected = endingOf(intentStatus, endReason);
    if (endings.join() !== expected) complaints.push(`${title} ended as ${endings.join(", ")} and not as ${expected}.`);
  }
  return complaints;
}
