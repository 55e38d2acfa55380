/** A payment that only a statement has, of an account without a provider config: it is attributed once, through the seam. */
import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { proposeAttribution } from "../../services/bus/messages/attribution-proposals.ts";
import { prepareIntent, settleIntent } from "../../services/bus/messages/intents.ts";
import * as issues from "../../services/bus/messages/issues.ts";
import { voidOrder } from "../../services/bus/messages/orders.ts";
import { listPayableOrders } from "../../services/bus/messages/payable-orders.ts";
import { confirmMatch, rejectMatch } from "../../services/reconciliation/matches.ts";
import { runReconciliation } from "../../services/reconciliation/matching.ts";
import { reasonOf } from "../support/refusal-of.ts";
import { paidBody, sendCallback } from "./emvco-callback.ts";
import { Scenes, SECRET } from "./emvco-scene.ts";
import { type Intent, type Place, type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";

/** The day of the payment, long before the attribution. */
const DAY = "2026-03-10";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

interface Account {
  readonly place: Place;
  readonly accountId: number;
}
interface Line {
  readonly reference?: string;
  readonly kind?: "payment" | "bank_credit";
  readonly amountMinor?: number;
}

async function openAccount(options: { readonly mode?: string; readonly place?: Place } = {}): Promise<Account> {
  const place = options.place ?? (await world.openPlace());
  const [row] = await world.database<{ account_id: number }[]>`
    insert into statement_accounts (organization_id, filial_id, provider, reference, name, mode)
    values (${place.organizationId}, ${place.filialId}, 'acquirer', 'M-1', 'Account', ${options.mode ?? "test"}) returning account_id`;
  return { place, accountId: row?.account_id ?? 0 };
}

/** Imports a line, makes a run, and returns the line's issue. */
async function unmatched(account: Account, line: Line = {}): Promise<issues.Issue> {
  const { kind = "payment", amountMinor = 1250, reference = randomUUID() } = line;
  const { organizationId } = account.place;
  const bytes = createHash("sha256").update(`${kind} ${reference}`).digest();
  await world.database`
    with f as (
      insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, format, format_version, encoding,
        status, uploaded_by, from_date, to_date)
      values (${organizationId}, ${account.accountId}, ${bytes}, 'a.csv', 1, 'csv', 1, 'utf-8', 'imported', 7, '2026-03-01',
        '2026-03-31') returning import_id
    ), l as (
      insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, kind, provider_type, amount_minor,
        currency, booked_on, provider_reference, payment_reference, merchant_reference, payout_reference, terminal, account, text)
      values (${organizationId}, ${account.accountId}, ${bytes}, 1, ${kind}, ${kind}, ${amountMinor}, 'EUR', ${DAY}, ${reference},
        '', '', '', '', '', '') returning line_id
    )
    insert into statement_line_sources (import_id, position, line_id) select import_id, 1, line_id from f, l`;
  await run(account);
  const found = (await list(account)).find(({ status }) => status === "open");
  if (found === undefined) throw new Error("There is no issue.");
  return found;
}

async function withdraw(account: Account): Promise<void> {
  const { accountId } = account;
  await world.database`
    delete from statement_line_sources where line_id in (select line_id from statement_lines where account_id = ${accountId})`;
  await world.database`delete from statement_lines where account_id = ${accountId}`;
  await setStatus(account, "withdrawn");
}

/** Sets the status of the account's file that is not withdrawn. */
async function setStatus({ accountId }: Account, status: "imported" | "withdrawing" | "withdrawn"): Promise<void> {
  const withdrawn = status === "imported" ? null : 7;
  await world.database`
    update statement_imports set status = ${status}, withdrawn_by = ${withdrawn},
      withdrawn_at = case when ${withdrawn}::bigint is not null then now() end,
      withdrawal_reason = case when ${withdrawn}::bigint is not null then 'Wrong file.' end
    where account_id = ${accountId} and status <> 'withdrawn'`;
}

async function run({ place, accountId }: Account): Promise<void> {
  const { database } = world;
  const { organizationId } = place;
  const days = { fromDate: "2026-03-01", toDate: "2026-03-31" };
  await runReconciliation(
    { database, longDatabase: database },
    { organizationId, accountId, ...days, startedBy: null },
  );
}

const list = async ({ place }: Account) =>
  (await world.ask(issues.listIssues, { caller: place.operator, limit: 100 })).issues;
const attribute = ({ place }: Account, { issueId }: issues.Issue, order: Pick<Intent, "orderId">) =>
  world.ask(issues.attributeIssue, {
    caller: place.operator,
    issueId,
    orderId: order.orderId,
    reason: "The slip is here",
  });
/** The account's line, and a payment of its amount that was settled at a terminal some weeks before. */
async function settledPayment({ place, accountId }: Account) {
  const { organizationId, stationId, operator } = place;
  const [row] = await world.database<{ transaction_id: number; line_id: number }[]>`
    with o as (
      insert into orders (organization_id, station_id, display_number, status, currency, total_minor, opened_by)
      values (${organizationId}, ${stationId}, 9999, 'paid', 'EUR', 1250, 7) returning order_id
    ), t as (
      insert into transactions (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by,
        settled_at)
      select ${organizationId}, order_id, ${stationId}, 900000 + ${accountId}::bigint, 'attested_terminal', 1250, 'EUR', '', 7,
        '2026-02-01T12:00:00Z' from o returning transaction_id
    )
    select transaction_id, line_id from t, statement_lines where account_id = ${accountId}`;
  const { transaction_id: transactionId = 0, line_id: lineId = 0 } = row ?? {};
  return { caller: operator, lineId, paymentKey: `transaction:${transactionId}`, reason: "Checked with the slip." };
}
const outcomes = async ({ accountId }: Account) =>
  (
    await world.database<{ reason: string }[]>`
      select coalesce(o.reason, case when m.line_id is not null then 'matched' end) as reason
      from statement_lines l left join line_outcomes o using (line_id) left join match_lines m using (line_id)
      where l.account_id = ${accountId}`
  ).map(({ reason }) => reason);
const transactions = (order: Intent) =>
  world.database<{ route: string; reference: string; money_key: string }[]>`
    select route, reference, money_key from transactions where order_id = ${order.orderId}`;

describe("a payment of a statement account without a config", () => {
  test.each([
    ["payment", "attested_terminal"],
    ["bank_credit", "dynamic_qr"],
  ] as const)(
    "of the kind %s: pays an order by the route %s, and later runs match its line with the order",
    async (kind, route) => {
      const account = await openAccount();
      const reference = randomUUID();
      const issue = await unmatched(account, { kind, reference });
      expect(issue).toMatchObject({
        kind: "unmatched_money",
        configId: null,
        accountKey: `statement:${account.accountId}`,
      });
      const order = await world.openIntent(account.place, 1250);
      const { issue: attributed } = await attribute(account, issue, order);
      expect(attributed).toMatchObject({ status: "attributed", orderId: order.orderId });
      // A bank may use its numbers again each day, so the line identifies the payment.
      const name = kind === "payment" ? `money:${reference}` : "line:[0-9a-f]{64}";
      const moneyKey: unknown = expect.stringMatching(new RegExp(`^statement:${account.accountId}:${name}$`));
      expect(await transactions(order)).toEqual([{ route, reference, money_key: moneyKey }]);
      expect((await attribute(account, issue, order)).issue).toEqual(attributed);
      const wanted = await world.database`
      select from_date::text, to_date::text from wanted_runs where account_id = ${account.accountId}`;
      expect(wanted.map((row) => ({ ...row }))).toEqual([{ from_date: DAY, to_date: DAY }]);
      for (const _ of [1, 2]) {
        await run(account);
        expect(await outcomes(account)).toEqual(["matched"]);
      }
      expect((await list(account)).map(({ status }) => status)).toEqual(["attributed"]);
    },
  );

  test("attributed to ten orders at once: pays one of them", async () => {
    const account = await openAccount();
    const issue = await unmatched(account);
    const orders = await Promise.all(Array.from({ length: 10 }, () => world.openIntent(account.place, 1250)));
    const asked = await Promise.allSettled(orders.map((order) => attribute(account, issue, order)));
    expect((await Promise.all(orders.map(transactions))).flat()).toHaveLength(1);
    expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("a slip with its reference has settled another order: pays none, and the same in the other order of time", async () => {
    const account = await openAccount();
    const { place } = account;
    const settle = (order: Intent, reference: string) =>
      world.ask(settleIntent, {
        ...order,
        attestationId: randomUUID(),
        stationId: place.stationId,
        route: "attested_terminal",
        reference,
        attestedBy: 7,
      });
    const used = await unmatched(account, { reference: "SLIP-4711-A" });
    await settle(await world.openIntent(place, 1250), "slip-4711-a");
    const order = await world.openIntent(place, 1250);
    expect(await reasonOf(attribute(account, used, order))).toBe("money_has_paid");
    expect(await transactions(order)).toEqual([]);

    const other = await openAccount();
    const free = await unmatched(other, { reference: "SLIP-4711-B" });
    await attribute(other, free, await world.openIntent(other.place, 1250));
    const answer = await world.ask(settleIntent, {
      ...(await world.openIntent(other.place, 1250)),
      attestationId: randomUUID(),
      stationId: other.place.stationId,
      route: "attested_terminal",
      reference: "SLIP-4711-B",
      attestedBy: 7,
    });
    expect(answer).toMatchObject({ settled: false, code: "reference_already_used" });
  });

  test("attributed, and then asserted by a callback of the same account: pays once", async () => {
    const place = await world.openPlace();
    const configId = await scenes.openConfig(place);
    const account = await openAccount({ place });
    const reference = `TX-${randomUUID()}`;
    const issue = await unmatched(account, { reference });
    await attribute(account, issue, await world.openIntent(place, 1250));
    const data = { reference: "X", transaction_id: reference, merchant_id: "M-1", amount: "12.50", currency: "EUR" };
    await sendCallback(world, { configId, body: paidBody(data), secret: SECRET });
    const [callback] = await world.database<{ outcome: string }[]>`
      select outcome from provider_callbacks where config_id = ${configId}`;
    expect(callback?.outcome).toBe("attributed");
  });

  test("closed: pays nothing", async () => {
    const account = await openAccount();
    const issue = await unmatched(account);
    await world.ask(issues.closeIssue, { caller: account.place.operator, issueId: issue.issueId, reason: "Paid back" });
    expect(await reasonOf(attribute(account, issue, await world.openIntent(account.place, 1250)))).toBe("issue_closed");
  });

  test("pays only an order of its mode, filial and amount, and only when its line has a reference", async () => {
    const account = await openAccount();
    const issue = await unmatched(account);
    expect(await reasonOf(attribute(account, issue, await world.openIntent(account.place, 1251)))).toBe(
      "amount_differs",
    );
    const live = await openAccount({ mode: "live" });
    const real = await unmatched(live);
    expect(await reasonOf(attribute(live, real, await world.openIntent(live.place, 1250)))).toBe("other_mode");
    const [station] = await world.database<{ station_id: number }[]>`
      with f as (insert into filials (organization_id, name) values (${account.place.organizationId}, 'Harbour') returning *)
      insert into stations (organization_id, filial_id, name, currency, sandbox)
      select organization_id, filial_id, 'Counter', 'EUR', true from f returning station_id`;
    const elsewhere = { ...account.place, stationId: station?.station_id ?? 0 };
    expect(await reasonOf(attribute(account, issue, await world.openIntent(elsewhere, 1250)))).toBe("other_filial");
    const nameless = await openAccount();
    const none = await unmatched(nameless, { reference: "" });
    const order = await world.openIntent(nameless.place, 1250);
    expect(await reasonOf(attribute(nameless, none, order))).toBe("not_attributable");
    expect(await transactions(order)).toEqual([]);
  });

  test("lists the orders that it can pay: open, of its amount, mode and filial, by the numbers that people know", async () => {
    const account = await openAccount();
    const { place } = account;
    const issue = await unmatched(account);
    const stations = await world.database<{ station_id: number; name: string }[]>`
      with f as (insert into filials (organization_id, name) values (${place.organizationId}, 'Harbour') returning *)
      insert into stations (organization_id, filial_id, name, currency, sandbox)
      select organization_id, filial_id, 'of another filial', 'EUR', true from f
      union all values (${place.organizationId}::bigint, ${place.filialId}::bigint, 'Bar', 'EUR', true), (${place.organizationId}, ${place.filialId}, 'live', 'EUR', false)
      returning station_id, name`;
    const stationOf = (name: string) => stations.find((each) => each.name === name)?.station_id ?? 0;
    for (const name of ["of another filial", "live"]) {
      await world.openIntent({ ...place, stationId: stationOf(name) }, 1250);
    }
    await world.openIntent(place, 1251);
    const { orderId } = await world.openIntent(place, 1250);
    await world.ask(voidOrder, { caller: place.cashier, orderId });
    await world.openIntent(await world.openPlace(), 1250);
    const older = await world.openIntent(place, 1250);
    const newer = await world.openIntent({ ...place, stationId: stationOf("Bar") }, 1250);
    const asked = { caller: place.operator, issueId: issue.issueId };
    const { orders } = await world.ask(listPayableOrders, asked);
    expect(orders).toEqual([
      { orderId: newer.orderId, orderDisplayNumber: 1, stationId: stationOf("Bar"), openedAtMs: expect.any(Number) },
      { orderId: older.orderId, orderDisplayNumber: 3, stationId: place.stationId, openedAtMs: expect.any(Number) },
    ]);
    await attribute(account, issue, older);
    const { orders: named } = await world.ask(issues.getIssue, asked);
    expect(named).toEqual([{ orderId: older.orderId, orderDisplayNumber: 3, stationId: place.stationId }]);
    expect((await world.ask(listPayableOrders, asked)).orders.map((order) => order.orderId)).toEqual([newer.orderId]);
  });

  test("confirmed as another payment: pays no order until a person rejects that match", async () => {
    const account = await openAccount();
    const issue = await unmatched(account);
    const pair = await settledPayment(account);
    await confirmMatch(world, { ...pair, lineIds: [pair.lineId], paymentKeys: [pair.paymentKey] });
    const order = await world.openIntent(account.place, 1250);

    expect(await reasonOf(attribute(account, issue, order))).toBe("line_confirmed");
    expect(await transactions(order)).toEqual([]);

    await rejectMatch(world, pair);
    expect((await attribute(account, issue, order)).issue).toMatchObject({ status: "attributed" });
  });

  test("has paid an order: is no other payment, before and after the next run, and stays with that order", async () => {
    const account = await openAccount();
    const issue = await unmatched(account);
    const pair = await settledPayment(account);
    const { issue: paid } = await attribute(account, issue, await world.openIntent(account.place, 1250));
    const confirm = () => confirmMatch(world, { ...pair, lineIds: [pair.lineId], paymentKeys: [pair.paymentKey] });

    expect(await reasonOf(confirm())).toBe("line_attributed");
    await run(account);
    expect(await reasonOf(confirm())).toBe("line_attributed");
    const ofOrder = { ...pair, paymentKey: `transaction:${paid.transactionId}` };
    expect(await reasonOf(rejectMatch(world, ofOrder))).toBe("line_attributed");
  });

  test("without a reference: the list of payable orders is refused with the reason", async () => {
    const account = await openAccount();
    const { issueId } = await unmatched(account, { reference: "" });
    const { operator, cashier } = account.place;
    expect(await reasonOf(world.ask(listPayableOrders, { caller: operator, issueId }))).toBe("not_attributable");
    expect(await reasonOf(world.ask(listPayableOrders, { caller: cashier, issueId }))).toBe("permission_denied");
    const elsewhere = (await world.openPlace()).operator;
    expect(await reasonOf(world.ask(listPayableOrders, { caller: elsewhere, issueId }))).toBe("not_found");
  });

  test("whose file is being withdrawn: pays nothing, and nothing is proposed", async () => {
    const account = await openAccount();
    const issue = await unmatched(account);
    const order = await world.openIntent(account.place, 1250);
    await setStatus(account, "withdrawing");
    expect(await reasonOf(attribute(account, issue, order))).toBe("import_withdrawing");
    const asked = { caller: account.place.operator, issueId: issue.issueId, orderId: order.orderId, reason: "Here" };
    expect(await reasonOf(world.ask(proposeAttribution, asked))).toBe("import_withdrawing");
    expect(await transactions(order)).toEqual([]);
  });

  test("whose file was withdrawn and imported again: pays an order, but not while that file is being withdrawn", async () => {
    const account = await openAccount();
    const line = { reference: randomUUID() };
    const { issueId } = await unmatched(account, line);
    await withdraw(account);
    await run(account);
    expect((await list(account)).map(({ status }) => status)).toEqual(["ended"]);
    const issue = await unmatched(account, line);
    expect(issue.issueId).toBe(issueId);
    const order = await world.openIntent(account.place, 1250);
    await setStatus(account, "withdrawing");
    expect(await reasonOf(attribute(account, issue, order))).toBe("import_withdrawing");
    await setStatus(account, "imported");
    expect((await attribute(account, issue, order)).issue).toMatchObject({ status: "attributed" });
  });

  test("whose file was withdrawn during a refused attribution: its issue ends with the next run", async () => {
    const account = await openAccount();
    const { place, accountId } = account;
    const issue = await unmatched(account);
    const order = await world.openIntent(place, 1250);
    const { issueId } = issue;
    const attribution = {
      intentId: order.intentId,
      attestationId: `issue:${issueId}:${order.intentId}`,
      stationId: place.stationId,
      orderId: order.orderId,
      amountMinor: order.amountMinor,
      currency: order.currency,
      reference: issue.providerReference,
      route: "attested_terminal",
      reason: "The slip is here",
      by: { userId: place.operator.userId, name: "Rosa", role: "reconciliation_operator" },
    };
    await world.database`
      update issues set attribution = ${world.database.json(attribution)}, attributed_since = now() where issue_id = ${issueId}`;
    await world.database`
      select settle_intent(${(await world.ask(prepareIntent, { stationId: place.stationId, orderId: order.orderId })).intentId}, 'cash',
        ${place.stationId}, ${order.orderId}, 'cash', ${order.amountMinor}, ${order.currency}, '', ${place.cashier.userId})`;
    await withdraw(account);
    await world.database`delete from wanted_runs where account_id = ${accountId}`;

    await attribute(account, issue, order).catch(() => undefined);

    const wanted =
      await world.database`select from_date::text, to_date::text from wanted_runs where account_id = ${accountId}`;
    expect(wanted.map((row) => ({ ...row }))).toEqual([{ from_date: DAY, to_date: DAY }]);
    await run(account);
    expect((await list(account)).map(({ status }) => status)).toEqual(["ended"]);
  });
});
