/**
 * Compares the database and the log with what people and the payment scheme did. It uses only SQL and the log reader of this
 * folder, and no code of the product. Each broken rule is one sentence.
 */

import { waitFor } from "../support/wait-for.ts";
import type { LoggedEvent } from "./log-reader.ts";
import { ACCOUNT, type Filial, type MoneyWorld } from "./money-world.ts";
import type { Acknowledged, Diary } from "./people.ts";
import type { Assertion, Scheme } from "./scheme.ts";

export interface Played {
  readonly filial: Filial;
  readonly diary: Diary;
}

/** In this time, the service repeats a confirmation that dead hosts left unanswered twice. It closes an issue within 5 s. */
const QUIET_WITHIN_MS = 30_000;

/** Waits until nothing is due. Fails when a task stays stuck. */
export async function untilQuiet(world: MoneyWorld, played: readonly Played[]): Promise<void> {
  const isPending = ({ filial }: Played): boolean => {
    const active = world.log.commitsOf(filial.stationId).at(-1)?.active;
    return active?.status === "settling" || (active?.status === "created" && active.route === "dynamic_qr");
  };
  let due: Readonly<Record<string, unknown>> = {};
  const isQuiet = async (): Promise<boolean> => {
    const hasCaughtUp = await world.log.hasCaughtUp();
    const [rows] = await world.database<[Record<string, number>]>`
      select (select count(*) from provider_tasks where done_at is null)::int as tasks,
        (select count(*) from issues where attribution is not null)::int as attributions,
        (select count(*) from outbox where delivered_at is null)::int as messages,
        (select count(*) from issues i join transactions t
          on t.intent_id = i.intent_id and t.reference = i.provider_reference
          where i.kind = 'settlement_refused' and i.status = 'open')::int as settled_issues`;
    due = { ...rows, stations: played.filter(isPending).map(({ filial }) => filial.stationId), hasCaughtUp };
    return hasCaughtUp && !played.some(isPending) && Object.values(rows).every((count) => count === 0);
  };
  await waitFor("nothing is due", isQuiet, QUIET_WITHIN_MS).catch((error: unknown) => {
    throw new Error(`Still due: ${JSON.stringify(due)}`, { cause: error });
  });
}

interface Sale {
  readonly transaction_id: number;
  readonly order_id: number;
  readonly intent_id: number;
  readonly route: string;
  readonly amount: number;
  readonly currency: string;
  readonly reference: string;
}
interface OrderNow {
  readonly order_id: number;
  readonly status: string;
  readonly total: number;
  readonly currency: string;
}
interface IssueNow {
  readonly issue_id: number;
  readonly kind: string;
  readonly status: string;
  readonly provider_reference: string;
  readonly transaction_id: number | null;
}
interface Books {
  readonly orders: readonly OrderNow[];
  readonly sales: readonly Sale[];
  readonly issues: readonly IssueNow[];
}

/** A sentence for each broken rule. It is empty when all payments are correct. */
export async function findBrokenRules(world: MoneyWorld, scheme: Scheme, played: readonly Played[]): Promise<string[]> {
  const broken = [...scheme.complaints];
  for (const each of played) {
    const books = await readBooks(world, each.filial);
    const events = world.log.eventsOf(each.filial.stationId);
    broken.push(
      ...sums(books),
      ...voids(books, each.diary),
      ...salesHaveIntents(books, events),
      ...paymentsSettleOnce(await booksOfAccount(world, each.filial, books), scheme, each.filial),
      ...salesHaveAssertedPayments(books, scheme, each.filial, events),
    );
  }
  return broken;
}

async function readBooks(
  { database }: MoneyWorld,
  { stationId, configId }: Pick<Filial, "stationId" | "configId">,
): Promise<Books> {
  const [orders, sales, issues] = await Promise.all([
    database<OrderNow[]>`
      select order_id, status, total_minor::float8 as total, currency from orders where station_id = ${stationId}`,
    database<Sale[]>`
      select transaction_id, order_id, intent_id, route, amount_minor::float8 as amount, currency, reference
      from transactions where station_id = ${stationId}`,
    database<IssueNow[]>`
      select issue_id, kind, status, provider_reference, transaction_id from issues where config_id = ${configId}`,
  ]);
  return { orders, sales, issues };
}

/** The records of both filials of a merchant account: a payment belongs to one of the two. */
async function booksOfAccount(world: MoneyWorld, { twin }: Filial, books: Books): Promise<Books> {
  if (twin === undefined) return books;
  const [station] = await world.database<[{ station_id: number }]>`
    select s.station_id from stations s join provider_configs c using (filial_id) where c.config_id = ${twin.configId}`;
  const other = await readBooks(world, { stationId: station.station_id, configId: twin.configId });
  return {
    orders: [...books.orders, ...other.orders],
    sales: [...books.sales, ...other.sales],
    issues: [...books.issues, ...other.issues],
  };
}

/** Σ transactions = Σ paid orders, by currency. A paid order has one transaction, and an intent has at most one. */
function sums({ orders, sales }: Books): string[] {
  const broken: string[] = [];
  for (const currency of new Set([...orders, ...sales].map((row) => row.currency))) {
    const collected = total(sales.filter((sale) => sale.currency === currency).map((sale) => sale.amount));
    const paid = orders.filter((order) => order.currency === currency && order.status === "paid");
    const due = total(paid.map((order) => order.total));
    if (collected !== due) broken.push(`${currency}: transactions sum up to ${collected}, paid orders to ${due}`);
  }
  for (const order of orders) {
    const count = sales.filter((sale) => sale.order_id === order.order_id).length;
    if (count !== (order.status === "paid" ? 1 : 0))
      broken.push(`order ${order.order_id} is ${order.status} and has ${count} transactions`);
  }
  const intents = new Set(sales.map((sale) => sale.intent_id));
  if (intents.size !== sales.length) broken.push("an intent has more than one transaction");
  return broken;
}

function voids({ orders }: Books, { voided }: Diary): string[] {
  return orders
    .filter(({ order_id: id, status }) => voided.includes(id) && status !== "voided")
    .map(({ order_id: id, status }) => `order ${id} was voided and is ${status}`);
}

/** Every transaction has a succeeded intent in the log or an attributed issue, and the reverse. */
function salesHaveIntents({ sales, issues }: Books, events: readonly LoggedEvent[]): string[] {
  const broken: string[] = [];
  const succeeded = events.filter(({ type }) => type === "intent_succeeded");
  const created = new Map(
    events.filter(({ type }) => type === "intent_created").map((event) => [event["intentId"], event]),
  );
  for (const sale of sales) {
    const { transaction_id: id } = sale;
    const ends = succeeded.filter((event) => event["transactionId"] === id && event["intentId"] === sale.intent_id);
    const attributed = issues.filter((issue) => issue.status === "attributed" && issue.transaction_id === id);
    if (ends.length + attributed.length !== 1)
      broken.push(`transaction ${id} has ${ends.length} succeeded intents and ${attributed.length} attributions`);
    const intent = created.get(sale.intent_id);
    if (attributed.length === 1 && intent === undefined) continue;
    const expected = [intent?.["route"], intent?.["orderId"], Number(intent?.["amountMinor"]), intent?.["currency"]];
    const actual = [sale.route, sale.order_id, sale.amount, sale.currency];
    if (JSON.stringify(expected) !== JSON.stringify(actual))
      broken.push(`transaction ${id} is ${actual.join(" ")}, its intent was ${expected.join(" ")}`);
    const isAttested = events.some(
      ({ type, intentId }) =>
        intentId === sale.intent_id && (type === "settlement_started" || type === "provider_confirmed"),
    );
    if (!isAttested) broken.push(`transaction ${id} has no attestation`);
  }
  for (const event of succeeded) {
    const matching = sales.filter((sale) => sale.intent_id === event["intentId"]);
    if (matching.length !== 1)
      broken.push(`intent ${Number(event["intentId"])} has succeeded and has ${matching.length} transactions`);
  }
  for (const { type, intentId } of events)
    if (type === "settlement_conflict") broken.push(`intent ${Number(intentId)} had ended when the seam paid it`);
  return broken;
}

/** Every asserted payment is one transaction or one issue. None is lost, and none settles twice. */
function paymentsSettleOnce({ sales, issues }: Books, scheme: Scheme, filial: Filial): string[] {
  const broken: string[] = [];
  const asserted = scheme.assertions.filter(
    ({ configId }) => configId === filial.configId || configId === filial.twin?.configId,
  );
  for (const [reference, reports] of groupBy(asserted, ({ transactionId }) => transactionId)) {
    const paid = sales.filter((sale) => sale.reference === reference && sale.route === "dynamic_qr");
    const raised = issues.filter((issue) => issue.provider_reference === reference);
    const kinds = raised.map((issue) => `${issue.kind} ${issue.status}`).join(", ") || "no issue";
    const payment = `${reference} (${kinds})`;
    if (paid.length > 1) broken.push(`${payment} has paid ${paid.length} orders`);
    if (paid.length + raised.length === 0) broken.push(`${payment} is lost`);
    // When the scheme's reports about a payment differ, each may be an issue, and the payment settles at most once.
    const isConsistent = new Set(reports.map((each) => JSON.stringify(each))).size === 1;
    if (isConsistent && raised.length > 1) broken.push(`${payment} is ${raised.length} issues`);
    const ofSale = raised.filter((issue) => issue.transaction_id !== null);
    if (isConsistent && paid.length === 1 && raised.length !== ofSale.length)
      broken.push(`${payment} has paid and is an issue without its transaction`);
    for (const issue of ofSale)
      if (paid[0]?.transaction_id !== issue.transaction_id)
        broken.push(`issue ${issue.issue_id} names a transaction that is not of ${payment}`);
    if (paid.length > 0 && raised.some((issue) => issue.status === "closed" && issue.transaction_id === null))
      if (isConsistent) broken.push(`${payment} was closed as resolved outside and has paid`);
  }
  for (const forged of scheme.forged) {
    const stored = [...sales.map((sale) => sale.reference), ...issues.map((issue) => issue.provider_reference)];
    if (stored.includes(forged)) broken.push(`the forged payment ${forged} was accepted`);
  }
  return broken;
}

/** Every QR sale has a payment of its amount and reference that the scheme has asserted. */
function salesHaveAssertedPayments(
  { sales, issues }: Books,
  scheme: Scheme,
  filial: Filial,
  events: readonly LoggedEvent[],
): string[] {
  const broken: string[] = [];
  for (const sale of sales.filter(({ route }) => route === "dynamic_qr")) {
    const isOfAmount = (money: Assertion): boolean =>
      money.transactionId === sale.reference && money.amountMinor === sale.amount && money.currency === sale.currency;
    const asserted = scheme.assertions.filter((money) => money.configId === filial.configId && isOfAmount(money));
    const isAttributed = issues.some((issue) => issue.transaction_id === sale.transaction_id);
    const isPlain = asserted.some(({ account }) => account === ACCOUNT);
    if (!(isAttributed ? asserted.length > 0 : isPlain))
      broken.push(`transaction ${sale.transaction_id} has the payment ${sale.reference}, which was not asserted so`);
  }
  // A smart POS sale needs the device's evidence.
  for (const sale of sales.filter(({ route }) => route === "smart_pos"))
    if (!events.some((event) => event.type === "outcome_reported" && event["intentId"] === sale.intent_id))
      broken.push(`transaction ${sale.transaction_id} has no evidence`);
  return broken;
}

/** Repeats every command whose answer is final, with its key. Returns a sentence for each answer that differs now. */
export async function repeatAll(world: MoneyWorld, played: readonly Played[]): Promise<string[]> {
  const broken: string[] = [];
  await Promise.all(
    played.map(async ({ filial, diary }) => {
      for (const { request, response } of diary.acknowledged.filter(isFinal)) {
        const again = await world.command(filial.stationId, request);
        const [before, after] = [response, again].map(({ reply }) => JSON.stringify(reply));
        if (before !== after) broken.push(`${JSON.stringify(request)} was answered ${before}, and later ${after}`);
      }
    }),
  );
  return broken;
}

const REPEATABLE: ReadonlySet<string> = new Set(["intent_create", "intent_attest", "intent_cancel", "intent_report"]);
const SEAM_REFUSALS: readonly string[] = ["order_changed", "order_already_paid", "order_voided", "money_already_used"];

/** A refusal changes nothing and may differ later, unless the seam has answered. */
function isFinal({ request, response }: Acknowledged): boolean {
  const { type } = request.command;
  if (!REPEATABLE.has(type)) return false;
  const { reply } = response;
  return reply.ok || (type === "intent_attest" && SEAM_REFUSALS.includes(reply.code));
}

function total(amounts: readonly number[]): number {
  return amounts.reduce((sum, amount) => sum + amount, 0);
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
