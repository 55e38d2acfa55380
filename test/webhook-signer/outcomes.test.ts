/** The effect of an attempt's outcome on its delivery, also when it is written twice or after that of a later holder. */
import { randomBytes } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { type DeliveryStep, nextDelivery } from "../../machines/webhook-delivery.ts";
import type { Database } from "../../services/db/pool.ts";
import { deliveryStep, endedAs, type StepRow, stepColumns } from "../../services/webhook-signer/sql/deliveries.ts";
import {
  type Decided,
  decide,
  isWrittenBefore,
  type OutcomeRow,
  OvertakenError,
  writeDecided,
  writeOutcomes,
} from "../../services/webhook-signer/sql/outcomes.ts";
import { openClone } from "../support/open-clone.ts";

let sql: Database;
let ids: { organization_id: number; consumer_id: number; endpoint_id: number };
let attempts = 0;

beforeAll(async () => {
  const clone = await openClone({ maxConnections: 4 });
  sql = clone.sql;
  [ids] = await sql<[typeof ids]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o
      returning organization_id, filial_id),
    c as (insert into robotics_consumers (organization_id, filial_id, name, mode, credential_hash)
      select organization_id, filial_id, 'Fleet', 'test', ${randomBytes(32)} from f
      returning organization_id, filial_id, consumer_id)
    insert into webhook_endpoints (organization_id, consumer_id, filial_id, url)
    select organization_id, consumer_id, filial_id, 'https://example.com/' from c
    returning organization_id, consumer_id, endpoint_id`;
  return clone.stop;
});

interface State {
  readonly status: string;
  readonly attempts: number;
  readonly manual_of: string | null;
  /** Whole seconds from now until it is due; null when it is never due. */
  readonly due_in: number | null;
  readonly is_delivered: boolean;
  /** How many attempts were requested, in how many seconds the schedule is due, and how many attempts it does not count. */
  readonly asked: number;
  readonly planned_in: number | null;
  readonly manual_attempts: number;
}

const UNASKED = { asked: 0, planned_in: null, manual_attempts: 0 };
const WAITING: State = { status: "pending", attempts: 0, manual_of: null, due_in: 0, is_delivered: false, ...UNASKED };

/** Stores a delivery in this state. With `lapsesInMs` it is an offer. */
async function deliveryIn(state: Partial<State>, lapsesInMs: number | null = null): Promise<number> {
  const { status, attempts: made, manual_of, due_in, is_delivered, asked, planned_in } = { ...WAITING, ...state };
  const [row] = await sql<[{ delivery_id: number }]>`
    insert into webhook_deliveries (organization_id, consumer_id, endpoint_id, event_type, body, status, attempts,
      manual_of, due_at, delivered_at, lapses_at, asked, planned_at)
    values (${ids.organization_id}, ${ids.consumer_id}, ${ids.endpoint_id}, 'robotics.paused', '{}', ${status}, ${made},
      ${manual_of}, now() + ${due_in}::float8 * interval '1 second', case when ${is_delivered}::boolean then now() end,
      now() + ${lapsesInMs}::float8 * interval '1 millisecond', ${asked},
      now() + ${planned_in}::float8 * interval '1 second')
    returning delivery_id`;
  return row.delivery_id;
}

async function stateOf(deliveryId: number): Promise<State & { readonly records: number }> {
  const [row] = await sql<[State & { records: number }]>`
    select status, attempts, manual_of, round(extract(epoch from due_at - now()))::float8 as due_in,
      delivered_at is not null as is_delivered, asked, manual_attempts,
      round(extract(epoch from planned_at - now()))::float8 as planned_in,
      (select count(*)::int from webhook_attempts a where a.delivery_id = d.delivery_id) as records
    from webhook_deliveries d where delivery_id = ${deliveryId}`;
  return row;
}

const outcome = (deliveryId: number, facts: Partial<OutcomeRow> = {}): OutcomeRow => {
  attempts += 1;
  const ms = { dns_ms: null, connect_ms: null, tls_ms: null, first_byte_ms: 1.5, total_ms: 2 };
  return {
    delivery_id: deliveryId,
    attempt_id: Date.now() * 1_000 + attempts,
    attempt: 1,
    asked: 0,
    retry_in_ms: null,
    address: "127.0.0.1",
    ...ms,
    http_status: 200,
    error: null,
    response_body: "",
    is_truncated: false,
    is_manual: false,
    ...facts,
  };
};
const failure = (deliveryId: number, facts: Partial<OutcomeRow> = {}): OutcomeRow =>
  outcome(deliveryId, { http_status: 500, error: "status_not_success", retry_in_ms: 60_000, ...facts });
const write = (...outcomes: OutcomeRow[]): Promise<void> =>
  sql.begin((transaction) => writeOutcomes(transaction, { outcomes, endpoints: [] }));

describe("an outcome", () => {
  const delivered = { status: "delivered", manual_of: null, due_in: null, is_delivered: true };
  const asked = (was: string): Partial<State> => ({ manual_of: was, attempts: 10, asked: 1 });
  const byHand: Partial<OutcomeRow> = { attempt: 11, asked: 1, is_manual: true };
  test.each<[string, Partial<State>, "success" | Partial<OutcomeRow>, Partial<State>]>([
    ["success", {}, "success", { ...delivered, attempts: 1 }],
    ["failure", {}, {}, { status: "pending", attempts: 1, due_in: 60 }],
    ["last failure", { attempts: 9 }, { attempt: 10, retry_in_ms: null }, { status: "failed", attempts: 10 }],
    ["failure on request, of a failed delivery", asked("failed"), byHand, { status: "failed", attempts: 11 }],
    ["failure on request, of an unsent delivery", asked("unsent"), byHand, { status: "failed", attempts: 11 }],
    ["failure on request, of a lapsed delivery", asked("lapsed"), byHand, { status: "lapsed", attempts: 11 }],
    [
      "failure on request, of a waiting delivery",
      { manual_of: "pending", asked: 1, attempts: 3, planned_in: 400 },
      { attempt: 4, asked: 1, is_manual: true, retry_in_ms: null },
      { status: "pending", manual_of: null, due_in: 400, attempts: 4, manual_attempts: 1, planned_in: null },
    ],
    [
      "failure while one more attempt is requested",
      { manual_of: "pending", asked: 1, planned_in: 0, due_in: 0 },
      {},
      { status: "pending", manual_of: "pending", due_in: 0, planned_in: 60, attempts: 1, manual_attempts: 0 },
    ],
    [
      "last failure while one more attempt is requested",
      { manual_of: "pending", asked: 1, planned_in: 0, attempts: 9 },
      { attempt: 10, retry_in_ms: null },
      { status: "pending", manual_of: "failed", due_in: 0, planned_in: null, attempts: 10 },
    ],
    [
      "failure on request, while one more attempt is requested",
      { manual_of: "pending", asked: 2, planned_in: 300, attempts: 1 },
      { attempt: 2, asked: 1, is_manual: true },
      { status: "pending", manual_of: "pending", due_in: 0, planned_in: 300, manual_attempts: 1 },
    ],
    [
      "success while one more attempt is requested",
      { manual_of: "pending", asked: 1, planned_in: 0 },
      "success",
      { status: "pending", manual_of: "delivered", due_in: 0, planned_in: null, is_delivered: true },
    ],
    [
      "failure on request, of a delivered delivery",
      { ...asked("delivered"), is_delivered: true },
      byHand,
      { ...delivered, attempts: 11 },
    ],
    // In the rows below the delivery no longer waits for the attempt.
    ["late success", { attempts: 1, due_in: 300 }, "success", { ...delivered, attempts: 2 }],
    ["late failure", { attempts: 1, due_in: 300 }, {}, { status: "pending", attempts: 2, due_in: 300 }],
    ["late last failure", { attempts: 1, due_in: 300 }, { retry_in_ms: null }, { status: "pending", due_in: 300 }],
    ["late failure of a delivered delivery", { ...delivered, attempts: 1 }, {}, { ...delivered, attempts: 2 }],
    [
      "late success of a permanently failed delivery",
      { status: "failed", due_in: null, attempts: 10 },
      "success",
      delivered,
    ],
    [
      "late success of a delivered delivery that was requested again",
      { attempts: 1, manual_of: "delivered", is_delivered: true, due_in: 300 },
      "success",
      { status: "pending", manual_of: "delivered", attempts: 2, due_in: 300, is_delivered: true },
    ],
  ])("%s", async (_name, before, what, after) => {
    const deliveryId = await deliveryIn(before);
    await write(what === "success" ? outcome(deliveryId) : failure(deliveryId, what));
    expect(await stateOf(deliveryId)).toMatchObject({ ...after, records: 1 });
  });

  test("an offer whose next attempt would be after its expiry: it lapses", async () => {
    const [long, short] = [await deliveryIn({}, 90_000), await deliveryIn({}, 30_000)];
    await write(failure(long), failure(short));
    expect(await stateOf(long)).toMatchObject({ status: "pending", due_in: 60 });
    expect(await stateOf(short)).toMatchObject({ status: "lapsed", due_in: null, attempts: 1 });
  });

  test("an outcome that is written again because the answer was lost: counted once", async () => {
    const deliveries = [await deliveryIn({}), await deliveryIn({})];
    const batch = deliveries.map((deliveryId) => failure(deliveryId));
    // At the same time, as when the connection breaks while PostgreSQL still runs its statement.
    const results = await Promise.allSettled([write(...batch), write(...batch), write(...batch)]);
    const refused = results.filter((result) => result.status === "rejected").map(({ reason }) => reason as unknown);
    expect(refused.map(isWrittenBefore)).toEqual([true, true]);
    for (const deliveryId of deliveries) expect(await stateOf(deliveryId)).toMatchObject({ attempts: 1, records: 1 });
  });

  test("texts and numbers are stored unchanged", async () => {
    const deliveryId = await deliveryIn({});
    const text = `"quoted", \\ {null} ,null' ü 🍜\n`;
    const made = outcome(deliveryId, {
      response_body: text,
      address: "2001:db8::1",
      total_ms: 12.25,
      is_truncated: true,
    });
    await write(made, failure(await deliveryIn({}), { address: null, response_body: "null" }));
    const [row] = await sql`select *, extract(epoch from started_at) * 1000000 as us from webhook_attempts
      where delivery_id = ${deliveryId}`;
    expect(row).toMatchObject({
      attempt_id: made.attempt_id,
      response_body: text,
      address: "2001:db8::1",
      dns_ms: null,
      total_ms: 12.25,
      is_truncated: true,
      error: null,
    });
    expect(Number(row?.["us"])).toBe(made.attempt_id);
    const [other] = await sql`select address, response_body from webhook_attempts order by attempt_id desc limit 1`;
    expect(other).toEqual({ address: null, response_body: "null" });
  });

  test("a delivery that is deleted: no record of it is left", async () => {
    const deliveryId = await deliveryIn({});
    await sql`delete from webhook_deliveries where delivery_id = ${deliveryId}`;
    await write(outcome(deliveryId));
    expect(await sql`select from webhook_attempts where delivery_id = ${deliveryId}`).toHaveLength(0);
  });
});

describe("the decision at the end of an attempt", () => {
  /** The delivery as the machine has it. */
  async function stepOf(deliveryId: number): Promise<DeliveryStep> {
    const [row] = await sql<[StepRow]>`
      select ${stepColumns(sql)} from webhook_deliveries where delivery_id = ${deliveryId}`;
    return deliveryStep(row);
  }
  const writeStep = (decided: readonly Decided[]): Promise<void> =>
    sql.begin((transaction) => writeDecided(transaction, { decided, endpoints: [] }));

  test.each<[string, Partial<State>, "success" | Partial<OutcomeRow>]>([
    ["success", {}, "success"],
    ["failure", {}, {}],
    ["last failure", { attempts: 9 }, { attempt: 10, retry_in_ms: null }],
    [
      "failure on request, of a waiting delivery",
      { manual_of: "pending", asked: 1, attempts: 3, planned_in: 400 },
      { attempt: 4, asked: 1, is_manual: true },
    ],
    ["success on request, of a failed delivery", { manual_of: "failed", asked: 1 }, "success"],
  ])("%s: is stored as if it was decided at the end, to the microsecond", async (_name, before, what) => {
    const [known, unknown] = [await deliveryIn(before), await deliveryIn(before)];
    const made = (deliveryId: number) => (what === "success" ? outcome(deliveryId) : failure(deliveryId, what));
    const decided = decide(made(known), await stepOf(known), Date.now());
    await writeStep([decided]);
    await write(made(unknown));
    expect(await stateOf(known)).toEqual(await stateOf(unknown));
    const { dueAtMs, plannedAtMs, deliveredAtMs } = decided.to.context;
    const stored = await stepOf(known);
    expect(stored.context.dueAtMs ?? 0).toBeCloseTo(dueAtMs ?? 0, 2);
    expect(stored.context.plannedAtMs ?? 0).toBeCloseTo(plannedAtMs ?? 0, 2);
    expect(stored.context.deliveredAtMs ?? 0).toBeCloseTo(deliveredAtMs ?? 0, 2);
  });

  test.each([
    ["one more attempt was requested", () => sql`asked = asked + 1, manual_of = 'pending'`],
    ["another holder has reported", () => sql`attempts = attempts + 1`],
    ["its endpoint was deleted", () => sql`status = 'failed', due_at = null`],
  ])("is not stored when %s in between, and neither is the rest of the batch", async (_name, change) => {
    const [overtaken, other] = [await deliveryIn({}), await deliveryIn({})];
    const decided = [
      decide(outcome(overtaken), await stepOf(overtaken), Date.now()),
      decide(outcome(other), await stepOf(other), Date.now()),
    ];
    await sql`update webhook_deliveries set ${change()} where delivery_id = ${overtaken}`;
    await expect(writeStep(decided)).rejects.toThrow(OvertakenError);
    expect(await stateOf(other)).toMatchObject({ status: "pending", attempts: 0, records: 0 });
    expect(await stateOf(overtaken)).toMatchObject({ records: 0 });
  });
});

test("many deliveries at once: each is stored as the machine decides", async () => {
  const states: readonly Partial<State>[] = [
    {},
    { is_delivered: true },
    { manual_of: "failed", asked: 1 },
    { manual_of: "delivered", asked: 1, is_delivered: true, planned_in: 60 },
  ];
  for (const status of ["failed", "lapsed"] as const) {
    for (const state of states) {
      const deliveryId = await deliveryIn(state, status === "lapsed" ? -1_000 : null);
      const [row] = await sql<[StepRow]>`
        select ${stepColumns(sql)} from webhook_deliveries where delivery_id = ${deliveryId}`;
      const event = status === "lapsed" ? ({ type: "LAPSE", atMs: Date.now() } as const) : ({ type: "END" } as const);
      const [ended] = await sql<[StepRow]>`
        update webhook_deliveries set ${endedAs(sql, status)} where delivery_id = ${deliveryId}
        returning ${stepColumns(sql)}`;
      expect(deliveryStep(ended)).toEqual(nextDelivery(deliveryStep(row), event));
    }
  }
});
