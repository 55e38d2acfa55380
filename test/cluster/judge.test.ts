/**
 * The judge of a trial finds each kind of error, and none in a trial without an error. `side-judges.test.ts` has the judges of
 * what happens beside the stations.
 */
import { describe, expect, it } from "vitest";
import { SERVICES } from "../../services/service-list.ts";
import { Random } from "../chaos/random.ts";
import type { Request } from "../support/api-client.ts";
import type { Answer } from "../support/http.ts";
import { type ClusterWorld, KINDS } from "./cluster-world.ts";
import { ofProcesses, VERBS } from "./faults.ts";
import { type EndedCollection, History, type Shown } from "./history.ts";
import {
  behind,
  doubledSales,
  extraEvents,
  type LoggedCommit,
  losses,
  missingEvents,
  missingSale,
  type Sale,
  unfinished,
  unnamed,
  wrongOrders,
} from "./judge.ts";
import { type FaultResult, lateness, outagesOf, resultUntilAwake, slowness } from "./outages.ts";
import { judgeQrs } from "./qr-judge.ts";
import { staleAnswers } from "./stale-answers.ts";
import { TaggedPoll } from "./tagged-poll.ts";
import { wrongAnswers } from "./wrong-answers.ts";

const MINUTE_MS = 60_000;
const STATIONS = 12;

const STATUS: Readonly<Record<string, string>> = { paid: "succeeded", qr: "presented" };
const shown = (orderDisplayNumber: number, state: string, askedAtMs: number, stationId = 1): Shown => ({
  stationId,
  gateway: "a gateway",
  askedAtMs,
  answeredAtMs: askedAtMs + 10,
  state,
  orderDisplayNumber,
  amount: orderDisplayNumber === 0 ? "0.00" : "2.50",
  currency: "EUR",
  qrPayload: state === "qr" ? "a QR" : "",
  intentStatus: STATUS[state] ?? "",
});
const ended = (
  orderDisplayNumber: number,
  acknowledgedAtMs: number,
  end: EndedCollection["end"] = "paid",
): EndedCollection => ({
  stationId: 1,
  orderId: orderDisplayNumber,
  orderDisplayNumber,
  route: "cash",
  amountMinor: 250,
  intentId: orderDisplayNumber,
  end,
  transactionId: 1,
  reference: "",
  qr: undefined,
  events: [],
  acknowledgedAtMs,
});

function staleOf(of: { readonly ended?: readonly EndedCollection[]; readonly shown: readonly Shown[] }): string[] {
  const history = new History();
  history.ended.push(...(of.ended ?? []));
  history.shown.push(...of.shown);
  return staleAnswers(history);
}

describe("a collection that was acknowledged as paid", () => {
  const sale: Sale = {
    transaction_id: "1",
    intent_id: "7",
    order_id: "7",
    route: "cash",
    amount_minor: "250",
    currency: "EUR",
    reference: "",
  };

  it("has one transaction with the order's sum, route and reference", () => {
    expect(missingSale(ended(7, 0), [sale])).toEqual([]);
    expect(missingSale(ended(7, 0, "cancelled"), [])).toEqual([]);
    expect(doubledSales([ended(7, 0)], [sale])).toEqual([]);
  });

  it.each([
    { what: "is gone", sales: [] },
    { what: "is another intent's", sales: [{ ...sale, intent_id: "8" }] },
    { what: "is another order's", sales: [{ ...sale, order_id: "8" }] },
  ])("is lost when its transaction $what", ({ sales }) => {
    expect(missingSale(ended(7, 0), sales)).toEqual(["Order 7: transaction 1 was acknowledged and is not there."]);
  });

  const WRONG = [{ amount_minor: "251" }, { currency: "CHF" }, { route: "dynamic_qr" }, { reference: "another slip" }];
  it.each(WRONG)("is wrong with %o", (wrong) => {
    expect(missingSale(ended(7, 0), [{ ...sale, ...wrong }])).toMatchObject([
      expect.stringMatching(/^Order 7 of 250 EUR by cash "": its transaction has /),
    ]);
  });

  it("is doubled with two transactions, and a transaction without it is one too many", () => {
    expect(doubledSales([ended(7, 0)], [sale, { ...sale, transaction_id: "2" }])).toEqual([
      "Order 7 has 2 transactions.",
    ]);
    const unpaid = "Order 7 has a transaction that no answer to a cashier names.";
    expect(doubledSales([ended(7, 0, "cancelled")], [sale])).toEqual([unpaid]);
    expect(doubledSales([], [sale])).toEqual([unpaid]);
  });
});

describe("an order", () => {
  const order = (status: string) => ({ order_id: "7", station_id: "1", status });

  it("is paid after a payment and voided after a cancellation", () => {
    expect(wrongOrders([ended(7, 0)], [order("paid")])).toEqual([]);
    expect(wrongOrders([ended(7, 0, "cancelled")], [order("voided")])).toEqual([]);
  });

  it("that is open or gone has lost its payment or its void", () => {
    expect(wrongOrders([ended(7, 0)], [order("open")])).toEqual(["Order 7 was paid and is open."]);
    expect(wrongOrders([ended(7, 0, "cancelled")], [order("open")])).toEqual(["Order 7 was voided and is open."]);
    expect(wrongOrders([ended(7, 0)], [])).toEqual(["Order 7 was paid and is not there."]);
  });

  it("or an intent that no answer names was made twice", () => {
    const events = (intentId: number) => new Map([[1, [{ version: 1, type: "intent_created", intentId }]]]);
    expect(unnamed([ended(7, 0)], { orders: [order("paid")], events: events(7) })).toEqual([]);
    expect(unnamed([ended(8, 0)], { orders: [order("open")], events: events(9) })).toEqual([
      "No answer to a cashier names order 7 of station 1.",
      "No answer to a cashier names intent 9.",
    ]);
  });
});

describe("the audit copy", () => {
  const REPORTED = ["intent_created", "outcome_reported", "intent_cancelled"];
  const counter = { ...ended(7, 0), events: REPORTED };
  const byQr = { ...ended(7, 0), route: "dynamic_qr", events: ["intent_created", "intent_succeeded"] };

  it("has each acknowledged event once, and for a QR also what only the provider reports", () => {
    expect([...missingEvents(counter, REPORTED), ...extraEvents(counter, REPORTED)]).toEqual([]);
    const happened = ["intent_created", "qr_presented", "intent_succeeded", "unclear_resolved", "unclear_resolved"];
    expect([...missingEvents(byQr, happened), ...extraEvents(byQr, happened)]).toEqual([]);
  });

  it("lacks an acknowledged event", () => {
    expect(missingEvents(counter, ["intent_created", "intent_cancelled"])).toEqual([
      "Intent 7: outcome_reported was acknowledged and is not in the audit copy.",
    ]);
  });

  it.each([
    { one: counter, happened: [...REPORTED, "outcome_reported"], extra: "outcome_reported" },
    { one: counter, happened: [...REPORTED, "intent_expired"], extra: "intent_expired" },
    { one: byQr, happened: [...byQr.events, "intent_created"], extra: "intent_created" },
    { one: byQr, happened: [...byQr.events, "provider_failed"], extra: "provider_failed" },
    { one: byQr, happened: [...byQr.events, "outcome_reported"], extra: "outcome_reported" },
  ])("has one event too many: $extra of $one.route", ({ one, happened, extra }) => {
    expect(extraEvents(one, happened)).toEqual([
      `Intent 7: the audit copy has ${extra}, and no step was acknowledged for it.`,
    ]);
  });

  it.each(["log_lost", "audit_gap", "settlement_conflict"])("records a loss itself: %s", (type) => {
    const events = new Map([[1, [{ version: 3, type, intentId: null }]]]);
    expect(losses(events)).toEqual([`Station 1: the audit copy has ${type} at version 3.`]);
    expect(losses(new Map([[1, [{ version: 3, type: "order_shown", intentId: null }]]]))).toEqual([]);
  });

  it("is behind its log when it has not the newest sequence", () => {
    expect(behind(new Map([["LOG", 5]]), new Map([["LOG", 5]]))).toEqual([]);
    expect(behind(new Map([["LOG", 4]]), new Map([["LOG", 5]]))).toEqual([
      "The audit copy of LOG is at 4 and the log at 5.",
    ]);
    expect(behind(new Map(), new Map([["LOG", 5]]))).toHaveLength(1);
  });
});

describe("a station's log", () => {
  const commit = (version: number, intent: LoggedCommit["state"]["intent"] = null) => ({ version, state: { intent } });

  it("is at rest with all versions and without an intent", () => {
    expect(unfinished(new Map([[1, [commit(3), commit(4)]]]))).toEqual([]);
  });

  it("that lacks a version, or still has an intent, is unfinished", () => {
    expect(unfinished(new Map([[1, [commit(3), commit(5)]]]))).toEqual(["Station 1 counts its commits [3,5]."]);
    expect(unfinished(new Map([[1, [commit(3, { intentId: 7, status: "settling" })]]]))).toEqual([
      "Station 1 still has intent 7, settling.",
    ]);
  });
});

describe("an answer of a display", () => {
  it("may lag for 1.5 s, and show an order as just paid for 8 s", () => {
    const found = staleOf({
      ended: [ended(1, 0), ended(2, 5_000), ended(3, 9_000, "cancelled")],
      shown: [
        shown(1, "total", 1_400),
        shown(1, "paid", 1_600),
        shown(2, "total", 2_500),
        shown(1, "paid", 3_900),
        shown(2, "paid", 6_600),
        shown(0, "idle", 7_000),
        shown(2, "paid", 10_400),
        shown(1, "total", MINUTE_MS, 2),
      ],
    });
    expect(found).toEqual([]);
  });

  it("is stale when it shows a paid order as unpaid", () => {
    expect(staleOf({ ended: [ended(1, 0)], shown: [shown(1, "total", 1_600)] })).toEqual([
      'a gateway showed "total" of order 1 at station 1 1600 ms after order 1 was paid.',
    ]);
  });

  it("is stale when it shows an older order as paid", () => {
    const found = staleOf({ ended: [ended(1, 0), ended(2, 5_000)], shown: [shown(1, "paid", 5_000 + MINUTE_MS)] });
    expect(found).toEqual(['a gateway showed "paid" of order 1 at station 1 60000 ms after order 2 was paid.']);
  });

  it("is stale when it shows an older order than an answer before it, although no answer named the end of either", () => {
    expect(staleOf({ shown: [shown(2, "total", 0), shown(1, "paid", 1_600)] })).toHaveLength(1);
    expect(staleOf({ shown: [shown(2, "paid", 0), shown(2, "total", 1_600)] })).toHaveLength(1);
    expect(staleOf({ ended: [ended(2, 0, "cancelled")], shown: [shown(1, "total", 1_600)] })).toHaveLength(1);
  });

  it("is stale when it shows an order as just paid long after the payment", () => {
    expect(staleOf({ ended: [ended(1, 0)], shown: [shown(1, "paid", 9_600)] })).toEqual([
      'a gateway showed "paid" of order 1 at station 1 9600 ms after it was paid.',
    ]);
  });
});

describe("a collection that a display shows", () => {
  const created = { stationId: 1, orderDisplayNumber: 7, intentStatus: "created", atMs: 0 } as const;
  const staleSince = (one: Partial<Shown>, cancelledAtMs?: number): string[] => {
    const history = new History();
    history.progressed.push(created, { ...created, intentStatus: "processing", atMs: 5_000 });
    if (cancelledAtMs !== undefined) history.ended.push(ended(7, cancelledAtMs, "cancelled"));
    history.shown.push({ ...shown(7, "total", 0), ...one });
    return staleAnswers(history);
  };

  it("may be behind what was acknowledged for 1.5 s, and has no status again after it was cancelled", () => {
    expect(staleSince({ askedAtMs: 1_400 })).toEqual([]);
    expect(staleSince({ askedAtMs: 6_400, intentStatus: "created" })).toEqual([]);
    expect(staleSince({ askedAtMs: 9_000, intentStatus: "processing" })).toEqual([]);
    expect(staleSince({ askedAtMs: 9_000 }, 7_000)).toEqual([]);
  });

  it("is stale when it is behind for longer", () => {
    const what = 'a gateway showed "total"';
    expect(staleSince({ askedAtMs: 1_600 })).toEqual([
      `${what} of order 7 at station 1 1600 ms after order 7 was known as created.`,
    ]);
    expect(staleSince({ askedAtMs: 6_600, intentStatus: "presented" })).toEqual([
      `${what}, presented, of order 7 at station 1 1600 ms after order 7 was known as processing.`,
    ]);
    expect(staleSince({ askedAtMs: 9_000, intentStatus: "processing" }, 7_000)).toEqual([
      `${what}, processing, of order 7 at station 1 2000 ms after order 7 was cancelled.`,
    ]);
  });

  it("is stale when a display showed its QR before and shows its order without a status now", () => {
    expect(staleOf({ shown: [shown(1, "qr", 0), shown(1, "qr", 1_600)] })).toEqual([]);
    expect(staleOf({ shown: [shown(1, "qr", 0), shown(1, "total", 1_600)] })).toHaveLength(1);
  });
});

describe("what displays and companions get", () => {
  const byQr = { ...ended(7, 0), route: "dynamic_qr" };
  const wrongOf = (one: Partial<Shown>, collection: EndedCollection = byQr): string[] => {
    const history = new History();
    history.ended.push(collection);
    history.shown.push({ ...shown(7, "qr", 0), ...one });
    return wrongAnswers(history, new Map([[7, "a QR"]]));
  };

  it("is the order's sum, the provider's QR and the right state", () => {
    expect(wrongOf({})).toEqual([]);
    expect(wrongOf(shown(7, "paid", 0))).toEqual([]);
    expect(wrongOf(shown(0, "idle", 0))).toEqual([]);
    expect(wrongOf({ ...shown(7, "total", 0), intentStatus: "presented" }, ended(7, 0))).toEqual([]);
  });

  it.each([
    { one: { amount: "2.51" }, found: "with 2.51 EUR instead of 2.50 EUR." },
    { one: { currency: "CHF" }, found: "with 2.50 CHF instead of 2.50 EUR." },
    { one: { qrPayload: "another QR" }, found: 'with the QR "another QR" instead of "a QR".' },
    { one: { intentStatus: "processing" }, found: 'with the status "processing" of its collection.' },
    { one: { state: "total", qrPayload: "" }, found: "which is presented by dynamic_qr." },
    { one: { orderDisplayNumber: 8 }, found: "which no answer to a cashier names." },
    { one: { ...shown(0, "idle", 0), amount: "2.50" }, found: "with 2.50 EUR instead of 0.00 EUR." },
  ])("is wrong: $found", ({ one, found }) => {
    expect(wrongOf(one)).toContainEqual(expect.stringContaining(found));
  });

  it("is wrong when a QR is shown for a collection by card", () => {
    expect(wrongOf({}, { ...ended(7, 0), route: "smart_pos" })).toContainEqual(
      expect.stringContaining("which is presented by smart_pos."),
    );
  });

  it("is wrong when the companion gets another sum", () => {
    const history = new History();
    const fetched = {
      stationId: 1,
      gateway: "a gateway",
      askedAtMs: 0,
      handed: { intentId: 7, amountMinor: 250, atMs: 0 },
    };
    history.fetched.push({ ...fetched, assignment: { intentId: 7, amount: "2.50", currency: "EUR" } });
    expect(wrongAnswers(history, new Map())).toEqual([]);
    history.fetched.push({ ...fetched, assignment: { intentId: 7, amount: "2.51", currency: "EUR" } });
    expect(wrongAnswers(history, new Map())).toEqual([
      "a gateway gave the companion of station 1 intent 7 with 2.51 EUR instead of 2.50 EUR.",
    ]);
  });

  it("is the last view after 304, and every second poll has its tag", async () => {
    const sent: (string | undefined)[] = [];
    const answers = [
      { status: 200, headers: new Headers({ etag: "one" }), body: "first", text: "" },
      { status: 304, headers: new Headers(), body: undefined, text: "" },
      { status: 200, headers: new Headers({ etag: "two" }), body: "second", text: "" },
      { status: 200, headers: new Headers({ etag: "three" }), body: "third", text: "" },
    ];
    const send = <T>(_step: string, _method: string, _path: string, request?: Request): Promise<Answer<T>> => {
      sent.push(request?.headers?.["if-none-match"]);
      return Promise.resolve(answers[sent.length - 1] as unknown as Answer<T>);
    };
    const poll = new TaggedPoll<string>({ send }, "display");
    const views = [await poll.view(), await poll.view(), await poll.view(), await poll.view()];
    expect({ views, sent }).toEqual({
      views: ["first", "first", "second", "third"],
      sent: [undefined, "one", undefined, "two"],
    });
  });
});

describe("a QR that the guest pays", () => {
  const BEGIN_MS = 1_000;
  const faultOf = (qrs?: "may_end" | "may_be_late") => ({ name: "a fault", target: "n0", withinMs: 500, qrs });
  const judged = (
    of: { readonly tookMs?: number; readonly endReason?: string; readonly count?: number },
    ...faults: readonly ReturnType<typeof faultOf>[]
  ) => {
    const { tookMs = 1_000, endReason = "", count = 1 } = of;
    const history = new History();
    for (const [index, fault] of faults.entries()) history.beginFault(fault, BEGIN_MS + index * MINUTE_MS);
    const qr = { askedAtMs: 2_000, createdAtMs: 2_000, endReason };
    const one = { ...ended(7, 2_000 + tookMs, endReason === "" ? "paid" : "cancelled"), route: "dynamic_qr", qr };
    history.ended.push(...Array.from({ length: count }, () => one));
    return judgeQrs(history);
  };
  const OUTAGE = { endReason: "provider_timed_out" };

  it("may end unpaid only during a fault that keeps the service from the provider", () => {
    expect(judged(OUTAGE, faultOf("may_end")).unpaid).toEqual([]);
    const sentence = "Intent 7, whose QR the guest would have paid, ended with provider_timed_out";
    for (const fault of [faultOf(), faultOf("may_be_late")])
      expect(judged(OUTAGE, fault).unpaid).toEqual([`${sentence} (a fault, n0).`]);
    expect(judged(OUTAGE, faultOf(), faultOf("may_end")).unpaid).toHaveLength(1);
    expect(judged(OUTAGE).unpaid).toEqual([`${sentence}.`]);
  });

  it("is one of many that were paid", () => {
    expect(judged({ ...OUTAGE, count: 20 }, faultOf("may_end")).unpaid).toEqual(["Of 20 QRs 0 were paid."]);
    expect(judged({ count: 20 }, faultOf("may_end"))).toMatchObject({
      unpaid: [],
      summary: "20 collections by QR, 20 paid, the slowest 1000 ms after its creation",
    });
  });

  it("is late when the first query and an outage do not explain the wait", () => {
    expect(judged({ tookMs: 12_000 }, faultOf()).late).toEqual([]);
    expect(judged({ tookMs: 12_001 }, faultOf()).late).toEqual([
      "Intent 7 was paid by QR 12001 ms after its creation instead of 12000 ms (a fault, n0).",
    ]);
    expect(judged({ tookMs: 70_000 }, faultOf(), faultOf()).late).toHaveLength(1);
  });

  it("has no bound without a fault, and none during a fault of the provider's side", () => {
    expect(judged({ tookMs: 80_000 }).late).toEqual([]);
    expect(judged({ tookMs: 80_000 }, faultOf(), faultOf("may_be_late")).late).toEqual([]);
  });
});

describe("while an order is open", () => {
  const idleAt = (askedAtMs: number, stationId = 1): string[] => {
    const history = new History();
    history.opened.push({ stationId: 1, orderDisplayNumber: 7, fromMs: 0, untilMs: 5_000 });
    history.shown.push(shown(0, "idle", askedAtMs, stationId));
    return staleAnswers(history);
  };

  it("a display may show none for 1.5 s", () => {
    expect([...idleAt(1_400), ...idleAt(4_995), ...idleAt(6_000), ...idleAt(1_600, 2)]).toEqual([]);
  });

  it("a display that shows none later is stale", () => {
    expect(idleAt(1_600)).toEqual(["a gateway showed no order at station 1 1600 ms after order 7 was opened."]);
  });
});

describe("while a collection waits for the companion", () => {
  const got = (intentId: number | undefined, askedAtMs: number): string[] => {
    const history = new History();
    const handed = { intentId: 7, amountMinor: 250, atMs: 0 };
    const assignment = intentId === undefined ? undefined : { intentId, amount: "2.50", currency: "EUR" };
    history.fetched.push({ stationId: 1, gateway: "a gateway", askedAtMs, assignment, handed });
    return staleAnswers(history);
  };

  it("the companion may get another answer for 1.5 s", () => {
    expect([...got(undefined, 1_400), ...got(6, 1_400), ...got(7, 60_000)]).toEqual([]);
  });

  it("another answer later is stale", () => {
    const who = "a gateway gave the companion of station 1";
    expect(got(undefined, 1_600)).toEqual([`${who} nothing 1600 ms after intent 7 was created.`]);
    expect(got(6, 1_600)).toEqual([`${who} intent 6 1600 ms after intent 7 was created.`]);
  });
});

/** Steps, each of another station, as `[step, started, ended, failed]`. */
function lateOf(
  fault: Pick<FaultResult, "withinMs"> & Partial<FaultResult>,
  steps: readonly (readonly [step: string, startedAtMs: number, endedAtMs: number, failedAtMs?: number])[],
): string[] {
  const history = new History();
  for (const [index, [step, startedAtMs, endedAtMs, failedAtMs]] of steps.entries()) {
    history.steps.push({ stationId: index + 1, step, startedAtMs, endedAtMs, failedAtMs });
  }
  const outages = outagesOf(history, 0, MINUTE_MS);
  const result = {
    name: "a fault",
    target: "n0",
    wrongErrors: 0,
    isDeath: false,
    failsNothing: false,
    ...outages,
    ...fault,
  };
  return [...lateness(result, STATIONS), ...slowness(result)];
}

describe("a fault", () => {
  const DEATH = { withinMs: 12_000, isDeath: true };

  it("may last as long as its bound, and one pause of a client", () => {
    const steps = [
      ["attest", 0, 1_000],
      ["display", 100, 1_250, 200],
      ["heartbeat", 90_000, 99_000],
    ] as const;
    expect(lateOf({ withinMs: 1_000 }, steps)).toEqual([]);
  });

  it("is late when a request fails for too long", () => {
    expect(lateOf({ withinMs: 1_000 }, [["attest", 0, 1_300, 20]])).toContain(
      "a fault (n0): 1280 ms instead of 1000 ms.",
    );
    expect(lateOf({ withinMs: 1_000 }, [["display", 0, 1_300, 20]])).toContain(
      "a fault (n0): 1280 ms instead of 1000 ms.",
    );
  });

  it.each(["attest", "display", "heartbeat"])(
    "is late when a good answer (%s) is too slow, although nothing failed",
    (step) => {
      expect(lateOf({ withinMs: 500 }, [[step, 0, 501]])).toEqual([
        `a fault (n0): ${step} at station 1 took 501 ms instead of 500 ms.`,
      ]);
    },
  );

  it("is late when an answer is slow before its first attempt fails", () => {
    expect(lateOf({ withinMs: 1_000 }, [["attest", 0, 5_300, 5_000]])).toEqual([
      "a fault (n0): attest at station 1 took 5300 ms instead of 1000 ms.",
    ]);
  });

  it("that must fail nothing is late when one attempt failed", () => {
    const stop = { withinMs: 500, failsNothing: true };
    expect(lateOf(stop, [["attest", 0, 400]])).toEqual([]);
    for (const step of ["attest", "display", "heartbeat"])
      expect(lateOf(stop, [[step, 0, 400, 100]])).toEqual(["a fault (n0): a request failed, for 300 ms."]);
  });

  it("of a target that wakes: until then only what was answered, or failed, before counts", () => {
    const steps = [
      { stationId: 1, step: "attest", startedAtMs: 0, endedAtMs: 1_500, failedAtMs: 100 },
      { stationId: 2, step: "display", startedAtMs: 0, endedAtMs: 15_000, failedAtMs: 7_000 },
      { stationId: 3, step: "report", startedAtMs: 9_000, endedAtMs: 19_000, failedAtMs: 11_000 },
    ];
    const whole = {
      name: "a stall",
      target: "n0",
      withinMs: 12_000,
      wrongErrors: 0,
      isDeath: false,
      failsNothing: false,
    };
    const result = { ...whole, ...outagesOf({ steps }, 0, MINUTE_MS) };
    const until = { fromMs: 0, awakeAtMs: 10_000, withinMs: 2_000 };
    expect(resultUntilAwake(result, { steps }, until)).toMatchObject({
      name: "a stall, until it wakes",
      withinMs: 2_000,
      commandOutageMs: 1_400,
      pollOutageMs: 3_000,
    });
    const hanging = [{ stationId: 1, step: "attest", startedAtMs: 4_000, endedAtMs: 11_000, failedAtMs: undefined }];
    expect(slowness(resultUntilAwake(result, { steps: hanging }, until))).toEqual([
      "a stall, until it wakes (n0): attest at station 1 took 6000 ms instead of 2000 ms.",
    ]);
  });

  it("that is the death of a server may stop four of ten stations", () => {
    const gap = ["attest", 0, 4_000, 100] as const;
    expect(
      lateOf(
        DEATH,
        Array.from({ length: 4 }, () => gap),
      ),
    ).toEqual([]);
    expect(
      lateOf(
        DEATH,
        Array.from({ length: 5 }, () => gap),
      ),
    ).toEqual(["a fault (n0): 5 of 12 stations saw a gap."]);
    expect(
      lateOf(
        { withinMs: 12_000 },
        Array.from({ length: 5 }, () => gap),
      ),
    ).toEqual([]);
  });

  it.each(["attest", "display", "heartbeat"])("that is a death stops a station whose %s is answered slowly", (step) => {
    const slow = [step, 0, 2_300] as const;
    expect(
      lateOf(
        DEATH,
        Array.from({ length: 5 }, () => slow),
      ),
    ).toEqual(["a fault (n0): 5 of 12 stations saw a gap."]);
  });
});

describe("a trial", () => {
  it("has processes of all services, and kills, stalls and stops them", async () => {
    expect([...KINDS].toSorted()).toEqual(["gateway", ...Object.keys(SERVICES)].toSorted());
    const processes = new Map(KINDS.flatMap((kind) => [0, 1].map((copy) => [`${kind}-${copy}`, {}] as const)));
    const world = { processes } as unknown as ClusterWorld;
    const faults = await Promise.all(ofProcesses(KINDS).map((draw) => draw(world, new Random(1))));
    const wanted = KINDS.flatMap((kind) => VERBS.map((verb) => `${verb} a process of ${kind}`));
    expect(faults.map(({ name }) => name)).toEqual(wanted);
  });
});
