/**
 * Money conservation from the guest's side: random collections of one order by companions and QRs. The test knows
 * whether the guest has paid; the station does not know it, and must ask before it charges a guest again.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ReportedOutcome } from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { assignedIntent } from "../../machines/views/assignment.ts";
import { moneyRefusal } from "./money-refusal.ts";
import { aQrCounter, COMPANION, type Scenario } from "./scenario.ts";

/** The relative frequency of each step. */
const STEP_WEIGHTS = {
  "hand over": 6,
  "collect by smart POS": 1,
  "show a QR": 3,
  "collect in cash": 1,
  fetch: 1,
  pay: 6,
  "pay an earlier one": 1,
  "report the truth": 2,
  "report an unknown outcome": 1,
  "report late": 1,
  confirm: 1,
  clear: 1,
  cancel: 4,
  "pass the deadline": 2,
  "freeze the companion": 1,
  "lift the freeze": 2,
} as const;
interface CollectionStep {
  readonly what: keyof typeof STEP_WEIGHTS;
  readonly confirms: boolean;
}
const WEIGHED = Object.entries(STEP_WEIGHTS).flatMap(([what, weight]) =>
  Array<CollectionStep["what"]>(weight).fill(what as CollectionStep["what"]),
);
const step: fc.Arbitrary<CollectionStep> = fc.record({ what: fc.constantFrom(...WEIGHED), confirms: fc.boolean() });

/** What is true of one collection, whether or not it was reported. */
interface Truth {
  readonly intentId: number;
  readonly route: "smart_pos" | "dynamic_qr" | "cash";
  isHandedOver: boolean;
  /** The payment application or the provider has ended the attempt without a payment. */
  isOver: boolean;
  hasPaid: boolean;
}

class Guest {
  readonly #counter: Scenario = aQrCounter();
  readonly #collections: Truth[] = [];
  /** Collections that began although the guest had paid, each with the cashier's confirmation. */
  confirmed = 0;
  refused = 0;

  does({ what, confirms }: CollectionStep): void {
    const counter = this.#counter;
    const last = this.#collections.at(-1);
    const earlier = this.#collections.at(-2);
    switch (what) {
      case "hand over":
        this.#collects("smart_pos", confirms);
        return this.#fetches();
      case "collect by smart POS":
        return this.#collects("smart_pos", confirms);
      case "show a QR":
        this.#collects("dynamic_qr", confirms);
        return this.#showsQr();
      case "collect in cash":
        return this.#collects("cash", confirms);
      case "fetch":
        return this.#fetches();
      case "pay":
        return pays(last);
      case "pay an earlier one":
        return pays(earlier);
      case "report the truth":
        return this.#reports(last, truthOf(last));
      case "report an unknown outcome":
        return this.#reports(last, "reported_unknown");
      case "report late":
        return this.#reports(earlier, truthOf(earlier));
      case "confirm":
        if (last?.route === "dynamic_qr" && last.hasPaid)
          counter.confirms({ reference: `PAY-${last.intentId}` }).refusesToSettle();
        return;
      case "clear":
        if (last?.route === "dynamic_qr" && last.isHandedOver && !last.hasPaid && counter.station.intent === null) {
          last.isOver = true;
          counter.clears();
        }
        return;
      case "cancel":
        counter.cancels();
        return;
      case "pass the deadline":
        counter.waits(180_000).ticks().leased().receivesHeartbeat();
        return;
      case "freeze the companion":
        counter.freezes({ devices: new Set([COMPANION.id]) });
        return;
      case "lift the freeze":
        counter.freezes({});
    }
  }

  #collects(route: Truth["route"], confirms: boolean): void {
    const { reply } = this.#counter.picks(route, { confirms });
    const hasPaid = this.#collections.some((collection) => collection.hasPaid);
    if (reply?.ok !== true) {
      if (reply?.code === "money_may_have_moved" && hasPaid) this.refused += 1;
      return;
    }
    if (hasPaid) {
      expect(confirms, "a guest who has paid is charged again only by the cashier's confirmation").toBe(true);
      this.confirmed += 1;
    }
    const { intentId } = this.#counter;
    this.#collections.push({ intentId, route, isHandedOver: false, isOver: false, hasPaid: false });
  }

  #fetches(): void {
    const last = this.#collections.at(-1);
    if (last?.route === "smart_pos" && this.#counter.fetches().happened.includes("intent_presented"))
      last.isHandedOver = true;
  }

  #showsQr(): void {
    const last = this.#collections.at(-1);
    if (last?.route !== "dynamic_qr") return;
    if (this.#counter.givesQr({ reference: `PAY-${last.intentId}` }).happened.includes("qr_presented"))
      last.isHandedOver = true;
  }

  /** A companion reports what it knows. When the guest has paid, it never reports that nothing was paid. */
  #reports(collection: Truth | undefined, outcome: ReportedOutcome): void {
    if (collection === undefined || collection.route !== "smart_pos" || !collection.isHandedOver) return;
    if (outcome === "reported_declined") collection.isOver = true;
    this.#counter.reports(outcome, { intentId: collection.intentId });
  }
}

function truthOf(collection: Truth | undefined): ReportedOutcome {
  return collection?.hasPaid === true ? "reported_success" : "reported_declined";
}

/** A guest pays while the card reader or the QR is shown to them, whether or not the collection has ended meanwhile. */
function pays(collection: Truth | undefined): void {
  if (collection?.isHandedOver === true && !collection.isOver) collection.hasPaid = true;
}

describe("a guest who may have paid", () => {
  it("any collections of one order: no guest is charged again without the cashier's confirmation", () => {
    let confirmed = 0;
    let refused = 0;
    fc.assert(
      fc.property(fc.array(step, { minLength: 15, maxLength: 30 }), (steps) => {
        const guest = new Guest();
        for (const each of steps) guest.does(each);
        confirmed += guest.confirmed;
        refused += guest.refused;
      }),
      { numRuns: 80 },
    );
    expect(confirmed, "guests who have paid are charged again by confirmation").toBeGreaterThan(2);
    expect(refused, "and the station asks before").toBeGreaterThan(2);
  });
});

/** Later evidence about an ended collection while another one of its order is in progress. */
const NEWS_OF: Readonly<Record<string, (counter: Scenario, intentId: number) => Scenario>> = {
  "a success": (counter, intentId) => counter.reports("reported_success", { intentId }),
  "an unknown outcome": (counter, intentId) => counter.reports("reported_unknown", { intentId }),
  "a decline": (counter, intentId) => counter.reports("reported_declined", { intentId }),
  "late money": (counter, intentId) => counter.confirms({ intentId, reference: `PAY-${intentId}` }),
  "other money": (counter, intentId) => counter.differs("amount_mismatch", { intentId }),
  "the provider's report": (counter, intentId) => counter.clears(intentId),
};
/** A collection of the order, the evidence during it, and an attempt to attest it. */
const collection = fc.record({
  route: fc.constantFrom("smart_pos", "dynamic_qr", "cash", "attested_terminal"),
  news: fc.array(fc.tuple(fc.constantFrom(...Object.keys(NEWS_OF)), fc.integer({ min: 0, max: 1 })), {
    minLength: 2,
    maxLength: 4,
  }),
  confirms: fc.boolean(),
  isDeclined: fc.boolean(),
});

describe("a late report between creation and attestation", () => {
  it("any evidence about any collections of one order: a cashier settles only after a newer confirmation", () => {
    let asked = 0;
    let confirmed = 0;
    fc.assert(
      fc.property(fc.array(collection, { minLength: 3, maxLength: 5 }), (collections) => {
        const counter = aQrCounter();
        for (const { route, news, confirms, isDeclined } of collections) {
          counter.picks(route).picks(route, { confirms: true });
          const intentId = counter.station.intent?.intentId ?? 0;
          counter.fetches({ intentId }).givesQr({ intentId });
          for (const [what, back] of news) NEWS_OF[what]?.(counter, counter.station.ended[back]?.intentId ?? 0);
          if (isDeclined) counter.reports("reported_declined", { intentId });
          // The scenario checks M57 after each step.
          counter.attests({ intentId, reference: "SLIP-9", confirmsMoney: confirms });
          if (counter.reply?.ok === false && counter.reply.code === "money_may_have_moved") asked += 1;
          if (counter.happened.includes("second_collection_confirmed")) confirmed += 1;
          counter.refusesToSettle("order_changed", { intentId }).fails("payment_declined", { intentId });
          counter.cancels({ intentId });
        }
      }),
      { numRuns: 30 },
    );
    expect([asked > 0, confirmed > 0], `${asked} asked, ${confirmed} confirmed`).toEqual([true, true]);
  });

  const declined = (outcome: ReportedOutcome = "reported_declined"): Scenario =>
    aQrCounter().picks("smart_pos").fetches().reports(outcome).cancels();
  const reportsLate = (counter: Scenario, outcome: ReportedOutcome = "reported_success"): Scenario =>
    counter.reports(outcome, { intentId: 1_001, reference: "RRN-1" });
  const NEWS = moneyRefusal({ reason: "late_success", earlierIntentId: 1_001 });

  it.each([
    ["reported_declined", "cash"],
    ["reported_cancelled", "attested_terminal"],
  ] as const)("a late success after %s: attesting a new %s collection needs a confirmation", (first, route) => {
    const counter = declined(first).picks(route);
    expect(counter.happened).toEqual(["intent_created"]);
    expect(reportsLate(counter).happened).toEqual(["late_evidence_kept"]);
    expect([counter.attests({ reference: "SLIP-9" }).reply, counter.happened]).toEqual([NEWS, []]);
    expect(counter.attests({ reference: "SLIP-9", confirms: true }).reply, "another confirmation").toEqual(NEWS);
    counter.attests({ reference: "SLIP-9", confirmsMoney: true });
    expect(counter.happened).toEqual(["settlement_started", "second_collection_confirmed"]);
    expect(counter.commits.at(-1)?.events[1]).toMatchObject({ earlierIntentId: 1_001 });
    expect(counter.settles().intent?.status).toBe("succeeded");
  });

  it("a report after the confirmation at the creation: the attestation asks again", () => {
    const counter = aQrCounter().picks("smart_pos").fetches().cancels().picks("cash", { confirms: true });
    expect(reportsLate(counter).attests().reply).toEqual(NEWS);
  });

  it("a confirmation: it holds for the reasons known then, not for a later reason and not for another collection", () => {
    const counter = reportsLate(declined().picks("cash")).attests({ confirmsMoney: true }).refusesToSettle();
    expect(counter.attests().happened, "after the seam has refused").toEqual(["settlement_started"]);
    counter.refusesToSettle();
    reportsLate(counter, "reported_unknown");
    expect(counter.attests().reply).toEqual({ ...NEWS, reason: "late_evidence" });
    expect(counter.cancels().picks("cash").reply).toMatchObject({ code: "money_may_have_moved" });
  });

  it("a refused attestation again with its key and a confirmation: accepted, and repetitions get the same answer", () => {
    const counter = reportsLate(declined().picks("cash")).attests({ key: "a" });
    expect(counter.reply).toEqual(NEWS);
    const settling = counter.attests({ key: "a", confirmsMoney: true }).reply;
    expect(settling).toMatchObject({ ok: true, status: "settling" });
    expect([counter.attests({ key: "a" }).reply, counter.happened]).toEqual([settling, []]);
    expect(counter.settles().attests({ key: "a" }).reply).toMatchObject({ ok: true, status: "succeeded" });
  });

  it("a late report while a QR is active: displays no longer show the QR, and its correct payment still settles it", () => {
    const counter = declined().picks("dynamic_qr").givesQr();
    expect(counter.display.state).toBe("qr");
    expect(reportsLate(counter).display).toMatchObject({ state: "total", qr_payload: "" });
    expect(counter.confirms().reply).toMatchObject({ ok: true, status: "settling" });
    expect(counter.refusesToSettle().attests().reply).toEqual(NEWS);
    expect(counter.attests({ confirmsMoney: true }).settles().intent?.status).toBe("succeeded");
  });

  it("a hand-off that its device has not fetched: the device no longer gets it; a fetched hand-off stays assigned", () => {
    const isAssigned = ({ station, atMs }: Scenario) => assignedIntent(station, COMPANION.id, atMs) !== null;
    const counter = declined().picks("smart_pos");
    expect([isAssigned(counter), isAssigned(reportsLate(counter))]).toEqual([true, false]);
    expect(counter.fetches().reply).toEqual({ ok: false, code: "handoff_not_assigned" });
    const fetched = reportsLate(declined().picks("smart_pos").fetches());
    expect([isAssigned(fetched), fetched.reports("reported_success").attests().reply]).toEqual([true, NEWS]);
  });

  it("a provider withdraws the payment of an earlier QR: the attestation needs no confirmation", () => {
    const counter = aQrCounter().picks("dynamic_qr").givesQr().fails("payment_declined").picks("cash");
    counter.differs("amount_mismatch", { intentId: 1_001 });
    expect(counter.attests().reply).toMatchObject({ code: "money_may_have_moved", reason: "money_differs" });
    expect(counter.clears(1_001).attests().happened).toEqual(["settlement_started"]);
  });

  it("late money of very many other orders: the reasons that the current collection has to confirm stay", () => {
    const counter = aQrCounter();
    const orderId = 900;
    for (let turn = 1; turn <= STATE_LIMITS.unclearCollections; turn += 1)
      counter
        .order({ orderId: 600 + turn })
        .picks("dynamic_qr")
        .givesQr()
        .cancels()
        .reportsEnd();
    counter.order({ orderId }).picks("smart_pos").fetches().reports("reported_declined").cancels().picks("cash");
    counter.reports("reported_success", { intentId: counter.intentId - 1 });
    const others = counter.station.ended.filter((intent) => intent.orderId !== orderId);
    for (let turn = 0; turn < STATE_LIMITS.unclearCollections; turn += 1) {
      counter.recalled = { ...(others[0] as (typeof others)[0]), intentId: 400 + turn };
      counter.differs("amount_mismatch", { intentId: 400 + turn });
    }
    expect(counter.station.unclearCollections).toHaveLength(STATE_LIMITS.unclearCollections);
    expect(counter.attests().reply).toMatchObject({ code: "money_may_have_moved", reason: "late_success" });
  });
});
