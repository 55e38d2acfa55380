/** The judge of a trial finds each kind of error, and none in a trial without an error. */
import { describe, expect, it } from "vitest";
import { SERVICES } from "../../services/service-list.ts";
import { Random } from "../chaos/random.ts";
import { type ClusterWorld, KINDS } from "./cluster-world.ts";
import { ofProcesses, VERBS } from "./faults.ts";
import { type EndedCollection, History, type Shown } from "./history.ts";
import { missingSale, type Sale } from "./judge.ts";
import { type FaultResult, lateness, outagesOf, resultUntilAwake, slowness } from "./outages.ts";
import { staleAnswers } from "./stale-answers.ts";

const MINUTE_MS = 60_000;
const STATIONS = 12;

const shown = (orderDisplayNumber: number, state: string, askedAtMs: number, stationId = 1): Shown => ({
  stationId,
  gateway: "a gateway",
  askedAtMs,
  answeredAtMs: askedAtMs + 10,
  state,
  orderDisplayNumber,
});
const ended = (orderDisplayNumber: number, acknowledgedAtMs: number, end: EndedCollection["end"] = "paid") => ({
  stationId: 1,
  orderId: orderDisplayNumber,
  orderDisplayNumber,
  route: "cash",
  amountMinor: 250,
  intentId: orderDisplayNumber,
  end,
  transactionId: 1,
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
  };

  it("has a transaction with the order's sum and route", () => {
    expect(missingSale(ended(7, 0), [sale])).toEqual([]);
    expect(missingSale(ended(7, 0, "cancelled"), [])).toEqual([]);
  });

  it.each([
    { what: "is gone", sales: [] },
    { what: "is another intent's", sales: [{ ...sale, intent_id: "8" }] },
    { what: "is another order's", sales: [{ ...sale, order_id: "8" }] },
  ])("is lost when its transaction $what", ({ sales }) => {
    expect(missingSale(ended(7, 0), sales)).toEqual(["Order 7: transaction 1 was acknowledged and is not there."]);
  });

  it.each([{ amount_minor: "251" }, { currency: "CHF" }, { route: "dynamic_qr" }])("is wrong with %o", (wrong) => {
    expect(missingSale(ended(7, 0), [{ ...sale, ...wrong }])).toMatchObject([
      expect.stringMatching(/^Order 7 of 250 EUR by cash: its transaction has /),
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
    const handed = { intentId: 7, atMs: 0 };
    history.fetched.push({ stationId: 1, gateway: "a gateway", askedAtMs, intentId, handed });
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
    expect(lateOf(stop, [["attest", 0, 400, 100]])).toEqual(["a fault (n0): a request failed, for 300 ms."]);
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
