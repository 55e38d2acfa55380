/** From a guest's payment at a terminal to a decision about its statement: by the APIs alone, as people and programs use them. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { send } from "../support/http.ts";
import { addOperator, logIn, newOrder, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

const SOON = { timeout: 20_000, interval: 100 };
const HEADER =
  "Zeitstempel,Transaktionscode,Transaktionsart,Status,Zahlungsmethode,Betrag,Währung,Trinkgeldbetrag,Gebührenbetrag,Auszahlungsdatum,Auszahlungs-ID,Beschreibung,Referenz";

interface Issue {
  readonly issue_id: number;
  readonly kind: string;
  readonly status: string;
  readonly amount: string;
  readonly provider_reference: string;
}

let system: TestSystem;
let cashier: Person;
let operator: Person;
let accountId: number;

beforeAll(async () => {
  system = await sharedSystem();
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  operator = await addOperator(system.baseUrl, owner);
  const { filialId } = system.sandbox;
  const facts = { provider: "sumup", reference: "MC4VDM6A", name: "Bar", mode: "test", filial_id: filialId };
  const body = { ...facts, currency: "EUR", settlement_delay_days: 0 };
  accountId = (await operator.good<{ account_id: number }>("POST", "accounts/", { body })).account_id;
  await cashier.good("POST", `${station()}/lease/`);
});
afterAll(() => system.stop());

const station = (): string => `stations/${system.sandbox.stations[0]?.stationId}`;
const today = new Date().toISOString().slice(0, 10);

async function collect(amount: string, route: string, reference?: string): Promise<void> {
  const order_id = await newOrder(cashier, station(), amount);
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station()}/intents/`, {
    body: { order_id, route },
  });
  const path = `${station()}/intents/${intent_id}/attest/`;
  await cashier.good("POST", path, { body: reference === undefined ? {} : { reference } });
}

const sale = (code: string, amount: string, tip = "0.00", method = "POS"): string =>
  `${today} 12:03:10,${code},Zahlung,Erfolgreich,${method},${amount},EUR,${tip},0.00,,,1 x Menü,`;

/** Uploads the rows, and waits until they are imported and compared. Returns the import's id. */
async function importAndRun(...rows: readonly string[]): Promise<number> {
  const path = `/api/reconciliation/v1/accounts/${accountId}/imports/?file_name=sumup.csv&format=sumup&encoding=utf-8`;
  const { body, status } = await send<{ import_id: number }>(system.baseUrl, "POST", path, {
    token: operator.token,
    body: `${[HEADER, ...rows].join("\n")}\n`,
    headers: { "content-type": "application/octet-stream" },
  });
  expect(status).toBe(201);
  await vi.waitFor(async () => {
    const file = await operator.good<{ status: string }>("GET", `imports/${body.import_id}/`);
    expect(file.status).toBe("imported");
  }, SOON);
  await run();
  return body.import_id;
}

async function run(): Promise<void> {
  const begun = await operator.good<{ run_id: number }>("POST", "runs/", { body: { account_id: accountId } });
  await vi.waitFor(async () => {
    const found = await operator.good<{ status: string }>("GET", `runs/${begun.run_id}/`);
    expect(found.status).toBe("done");
  }, SOON);
}

async function issues(decision = "pending"): Promise<string[]> {
  const path = `issues/?account=statement:${accountId}&decision=${decision}`;
  const found = await operator.good<{ issues: Issue[] }>("GET", path);
  return found.issues.map((issue) => `${issue.kind} ${issue.amount} ${issue.provider_reference}`).toSorted();
}

describe("a day at the terminal", () => {
  test("each difference has its kind, a closed difference stays closed, and no difference settles an order", async () => {
    await collect("16.00", "attested_terminal", "TC1AAAAAAA");
    await collect("9.00", "attested_terminal", "tc2aaaaaaa");
    await collect("7.00", "attested_terminal", "TC9MISSING");
    await collect("4.50", "cash");
    const rows = [
      sale("TC1AAAAAAA", "17.00", "1.00"),
      `${today} 12:03:21,TC1AAAAAAA,Auszahlung,Geplant,,17.00,EUR,,0.00,${today},900021,,`,
      sale("TC2AAAAAAA", "9.00"),
      sale("TC3STRAYAA", "5.00"),
      sale("TC4CASHAAA", "4.50", "0.00", "Bar"),
    ];

    await importAndRun(...rows);

    expect(await issues()).toEqual([
      "missing_in_statement 7.00 TC9MISSING",
      "tip 17.00 TC1AAAAAAA",
      "unmatched_money 5.00 TC3STRAYAA",
    ]);
    const { matches } = await operator.good<{ matches: object[] }>("GET", `matches/?account_id=${accountId}`);
    expect(matches).toMatchObject([
      { tier: "exact", lines: [{ amount: "9.00" }], payments: [{ source: "transaction", amount: "9.00" }] },
    ]);

    const closed = await operator.good<{ closed_ids: number[] }>("POST", "issues/close/", {
      body: { filter: { account: `statement:${accountId}` }, reason: "Dealt with." },
    });
    expect(closed.closed_ids).toHaveLength(3);
    // A longer report of the same day: the rows that it repeats are the same lines.
    const longer = await importAndRun(...rows.toReversed(), sale("TC5STRAYAA", "6.00"));
    expect(await issues()).toEqual(["unmatched_money 6.00 TC5STRAYAA"]);
    expect(await issues("made")).toHaveLength(3);

    await operator.good("POST", `imports/${longer}/withdraw/`, { body: { reason: "It is of another day." } });
    await vi.waitFor(async () => expect(await issues()).toEqual([]), SOON);
    const { orders } = await cashier.good<{ orders: object[] }>("GET", `${station()}/orders/?status=open`);
    expect(orders).toEqual([]);
  });
});
