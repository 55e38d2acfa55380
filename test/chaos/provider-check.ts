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

/** The rows of this service about payments at the provider. */
export interface ProviderRows {
  /** The transactions by QR, with the payment that `provider_payments` notes for each. */
  readonly sales: readonly {
    readonly intent_id: string;
    readonly amount_minor: string;
    readonly reference: string;
    readonly paid_reference: string | null;
  }[];
  readonly issues: readonly { readonly kind: string; readonly provider_reference: string }[];
  /** The payments that are noted as paid. */
  readonly noted: readonly { readonly intent_id: string; readonly paid_reference: string }[];
  /** The open tasks. */
  readonly tasks: readonly {
    readonly intent_id: string;
    readonly kind: string;
    readonly attempts: number;
    readonly is_paid: boolean;
    readonly late_ms: number;
  }[];
  /** The callbacks that were not accepted, or are not recorded once. */
  readonly callbacks: readonly {
    readonly event_id: string;
    readonly last_answer: string | null;
    readonly attempts: number;
    readonly recorded: number;
  }[];
}

export async function checkProvider(sql: postgres.Sql, provider: ProviderAccount): Promise<ProviderCheck> {
  return compareWithProvider(await readStatement(provider), await readProviderRows(sql));
}

/** Compares the provider's statement with the rows of this service. */
export function compareWithProvider(lines: readonly StatementLine[], rows: ProviderRows): ProviderCheck {
  const money = checkStatement(lines, rows);
  const complaints = [...money.complaints, ...checkSales(lines, rows), ...checkTasks(rows), ...checkDeliveries(rows)];
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

async function readProviderRows(sql: postgres.Sql): Promise<ProviderRows> {
  const sales = await sql<ProviderRows["sales"][number][]>`
    select t.intent_id::text, t.amount_minor::text, t.reference, p.paid_reference
    from transactions t left join provider_payments p using (intent_id) where t.route = 'dynamic_qr'`;
  const issues = await sql<ProviderRows["issues"][number][]>`select kind, provider_reference from issues`;
  const noted = await sql<ProviderRows["noted"][number][]>`
    select intent_id::text, paid_reference from provider_payments where paid_reference is not null`;
  const tasks = await sql<ProviderRows["tasks"][number][]>`
    select t.intent_id::text, t.kind, t.attempts, p.paid_at is not null as is_paid,
      (extract(epoch from now() - t.due_at) * 1000)::int as late_ms
    from provider_tasks t join provider_payments p using (intent_id) where t.done_at is null`;
  const callbacks = await sql<ProviderRows["callbacks"][number][]>`
    select c.event_id, c.last_answer, c.attempts,
      (select count(*)::int from provider_callbacks r where r.event_key = 'id:' || c.event_id) as recorded
    from sandbox_provider_callbacks c
    where c.done_at is null or c.last_answer <> '200'
      or (select count(*) from provider_callbacks r where r.event_key = 'id:' || c.event_id) <> 1`;
  return { sales, issues, noted, tasks, callbacks };
}

/** Checks that each payment of the provider has paid one order or is one issue: never both, never neither. */
function checkStatement(lines: readonly StatementLine[], { sales, issues: raised }: ProviderRows) {
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
function checkSales(lines: readonly StatementLine[], { sales, noted }: ProviderRows): string[] {
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
function checkTasks({ tasks }: ProviderRows): string[] {
  return tasks.flatMap(({ intent_id, kind, late_ms, attempts, is_paid }) =>
    (kind === "poll" || kind === "withdraw") && !is_paid && late_ms < TASK_DUE_MS
      ? []
      : [`The task ${kind} of intent ${intent_id} is not done after ${attempts} attempts, and late by ${late_ms} ms.`],
  );
}

/** Checks that every callback of the provider was accepted, and is recorded once. */
function checkDeliveries({ callbacks }: ProviderRows): string[] {
  return callbacks.map(
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

/** The events that a QR collection cannot have, that happened twice, and ends that are not acknowledged. */
export function oddQrEvents(happened: readonly string[], acknowledged: ReadonlySet<string>): string[] {
  return happened.filter((type, index) => {
    const isSecond = !REPEATED.has(type) && happened.indexOf(type) !== index;
    return isSecond || !ALLOWED.has(type) || (ENDINGS.has(type) && !acknowledged.has(type));
  });
}

/** Checks that each acknowledged step happened, that each other event is a possible one, and that nothing happened twice. */
export function checkQrCollections(collections: readonly Collection[], auditLog: readonly AuditEvent[]): string[] {
  const complaints: string[] = [];
  for (const { intentId, events, intentStatus, endReason, plan } of collections) {
    if (!isQr(plan)) continue;
    const happened = auditLog.filter((event) => event.intentId === intentId).map(({ type }) => type);
    const title = `Intent ${intentId} (${plan.scenario}, ${plan.ending})`;
    const missing = events.filter((type) => !happened.includes(type));
    const odd = oddQrEvents(happened, ENDINGS);
    if (missing.length > 0) complaints.push(`${title} lacks ${missing.join(", ")}: ${happened.join(", ")}.`);
    if (odd.length > 0) complaints.push(`${title} has ${odd.join(", ")}: ${happened.join(", ")}.`);
    const endings = happened.filter((type) => ENDINGS.has(type));
    const expected = endingOf(intentStatus, endReason);
    if (endings.join() !== expected) complaints.push(`${title} ended as ${endings.join(", ")} and not as ${expected}.`);
  }
  return complaints;
}
