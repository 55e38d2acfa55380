/**
 * Every kind of issue that a callback raises can be reached over HTTP, with a cashier, a provider that posts signed callbacks,
 * and an operator who lists issues. The test reads the list of kinds, so a new kind needs a case here.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CALLBACK_ISSUE_KINDS, ISSUE_KINDS } from "../../services/bus/messages/issues.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { postCallback } from "../providers/emvco-callback.ts";
import { emvcoSettings } from "../support/emvco-settings.ts";
import type { Answer } from "../support/http.ts";
import { addOperator, logIn, newOrder, openTill, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";

type IssueKind = (typeof CALLBACK_ISSUE_KINDS)[number];

const SECRET = "the-secret-of-the-callbacks-in-this-test";
const SOON_MS = 10_000;

interface Intent {
  readonly intent_id: number;
  readonly status: string;
  readonly provider: { readonly qr_payload: string } | null;
}
interface Issue {
  readonly kind: string;
  readonly status: string;
  readonly intent_id: number | null;
  readonly order_id: number | null;
  readonly provider_reference: string;
}

let system: TestSystem;
let owner: Person;
let cashier: Person;
let operator: Person;
let station: string;
let configId: number;

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  ({ cashier, station } = await openTill(system));
  operator = await addOperator(system.baseUrl, owner, "rita@issues.example");
  const { provider_config } = await owner.good<{ provider_config: { config_id: number } }>(
    "POST",
    "provider-configs/",
    {
      body: {
        filial_id: system.sandbox.filialId,
        kind: "emvco_generic",
        mode: "test",
        name: "Scheme",
        settings: emvcoSettings(),
        secrets: { callback_secret: SECRET },
      },
    },
  );
  configId = provider_config.config_id;
});
afterAll(() => system.stop());

/** A collection whose QR the guest sees. */
interface Scene {
  readonly orderId: number;
  readonly intentId: number;
  readonly money: Readonly<Record<string, unknown>>;
}

async function present(): Promise<Scene> {
  const order_id = await newOrder(cashier, station, "12.50");
  const body = { order_id, route: "dynamic_qr" };
  let intent = await cashier.good<Intent>("POST", `${station}/intents/`, { body });
  const { intent_id: intentId } = intent;
  const status = async (): Promise<string> => {
    intent = await cashier.good<Intent>("GET", `${station}/intents/${intentId}/`);
    return intent.status;
  };
  await expect.poll(status, { timeout: SOON_MS, interval: 50 }).toBe("presented");
  // The payload has the reference label as tag 05 of the additional data.
  const reference = /6228\d{2}24([0-9A-Z]{24})/.exec(intent.provider?.qr_payload ?? "")?.[1];
  const money = { reference, transaction_id: `T-${intentId}`, merchant_id: "M-1", amount: "12.50", currency: "EUR" };
  return { orderId: order_id, intentId, money };
}

let events = 0;

async function callBack(data: Readonly<Record<string, unknown>>): Promise<Answer> {
  events += 1;
  const body = JSON.stringify({ id: `evt-${events}`, type: "payment.paid", data });
  const answer = await postCallback(system.baseUrl, { configId, body, secret: SECRET });
  expect(answer.status, answer.text).toBe(200);
  return answer;
}

const cancel = ({ intentId }: Scene): Promise<unknown> =>
  cashier.good("POST", `${station}/intents/${intentId}/cancel/`);

async function untilPaid({ orderId }: Scene): Promise<void> {
  const status = async (): Promise<string> =>
    (await cashier.good<{ status: string }>("GET", `orders/${orderId}/`)).status;
  await expect.poll(status, { timeout: SOON_MS, interval: 50 }).toBe("paid");
}

/** What raises each kind. */
const CAUSES: Readonly<Record<IssueKind, (scene: Scene) => Promise<unknown>>> = {
  unmatched_money: ({ money }) => callBack({ ...money, reference: "UNKNOWN" }),
  amount_over: ({ money }) => callBack({ ...money, amount: "12.60" }),
  amount_under: ({ money }) => callBack({ ...money, amount: "12.40" }),
  amount_unknown: ({ money }) => callBack({ ...money, amount: "a lot" }),
  currency_mismatch: ({ money }) => callBack({ ...money, currency: "USD" }),
  account_mismatch: ({ money }) => callBack({ ...money, merchant_id: "M-2" }),
  async reference_mismatch(scene) {
    await callBack(scene.money);
    await untilPaid(scene);
    await callBack({ ...scene.money, reference: "OTHER-INTENTS" });
  },
  async late_money(scene) {
    await cancel(scene);
    await callBack(scene.money);
  },
  async duplicate_money(scene) {
    await callBack({ ...scene.money, transaction_id: "the first" });
    await untilPaid(scene);
    await callBack(scene.money);
  },
  async settlement_refused(scene) {
    // The change is written past the service, so that the station does not receive it and does not end the QR.
    const database = openDatabase({ url: system.database.url, maxConnections: 1 });
    await database`update orders set total_minor = 2500, revision = revision + 1 where order_id = ${scene.orderId}`;
    await closeDatabase(database);
    await callBack(scene.money);
  },
};

const issuesOf = async ({ money }: Scene): Promise<Issue[]> => {
  const { issues } = await operator.good<{ issues: Issue[] }>("GET", "issues/");
  return issues.filter((issue) => issue.provider_reference === money["transaction_id"]);
};

describe("issue kinds", () => {
  test.each(CALLBACK_ISSUE_KINDS)("%s: raised once, and its payment settles nothing", async (kind) => {
    const scene = await present();
    await CAUSES[kind](scene);
    const kinds = async (): Promise<string[]> => (await issuesOf(scene)).map((issue) => issue.kind);
    await expect.poll(kinds, { timeout: SOON_MS, interval: 50 }).toEqual([kind]);
    const [issue] = await issuesOf(scene);
    const isUnmatched = kind === "unmatched_money";
    expect(issue).toMatchObject({
      status: "open",
      intent_id: isUnmatched ? null : scene.intentId,
      order_id: isUnmatched ? null : scene.orderId,
    });
    const { transaction } = await cashier.good<{ transaction: object | null }>("GET", `orders/${scene.orderId}/`);
    const isPaidOtherwise = kind === "reference_mismatch" || kind === "duplicate_money";
    expect(transaction === null).toBe(!isPaidOtherwise);
    if (!["late_money", "reference_mismatch", "duplicate_money"].includes(kind)) await cancel(scene);
  });

  test("the kinds that PostgreSQL allows: the kinds of callbacks and statements, and no others", async () => {
    expect(Object.keys(CAUSES).toSorted()).toEqual([...CALLBACK_ISSUE_KINDS].toSorted());
    const database = openDatabase({ url: system.database.url, maxConnections: 1 });
    const [check] = await database<[{ text: string }]>`
      select pg_get_constraintdef(oid) as text from pg_constraint where conname = 'issues_kind_check'`;
    await closeDatabase(database);
    const stored = [...check.text.matchAll(/'(\w+)'/g)].map(([, kind]) => kind ?? "");
    expect(stored.toSorted()).toEqual([...ISSUE_KINDS].toSorted());
  });
});
