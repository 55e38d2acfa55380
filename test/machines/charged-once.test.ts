/**
 * Money conservation as the guest sees it: random collections of one order over companions and QRs, beside the truth of
 * whether the guest has paid. The station does not know that truth; it must ask before it charges a guest again.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ReportedOutcome } from "../../machines/payment-intent.ts";
import { aQrCounter, COMPANION, type Scenario } from "./scenario.ts";

/** How often each happens, of all of them together. */
const DEEDS = {
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
interface Deed {
  readonly what: keyof typeof DEEDS;
  readonly confirms: boolean;
}
const WEIGHED = Object.entries(DEEDS).flatMap(([what, weight]) =>
  Array<Deed["what"]>(weight).fill(what as Deed["what"]),
);
const deed: fc.Arbitrary<Deed> = fc.record({ what: fc.constantFrom(...WEIGHED), confirms: fc.boolean() });

/** What is true of one collection, whether or not it was reported. */
interface Truth {
  readonly intentId: number;
  readonly route: "smart_pos" | "dynamic_qr" | "cash";
  isHandedOver: boolean;
  /** The payment application or the provider has ended the attempt without money. */
  isOver: boolean;
  hasPaid: boolean;
}

class Guest {
  readonly #counter: Scenario = aQrCounter();
  readonly #collections: Truth[] = [];
  /** Collections that were begun although the guest had paid, each with the cashier's confirmation. */
  confirmed = 0;
  refused = 0;

  does({ what, confirms }: Deed): void {
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
        counter.waits(180_000).ticks().leased().hears();
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

  /** A companion reports what it knows: never that nothing was paid when the guest has paid. */
  #reports(collection: Truth | undefined, outcome: ReportedOutcome): void {
    if (collection === undefined || collection.route !== "smart_pos" || !collection.isHandedOver) return;
    if (outcome === "reported_declined") collection.isOver = true;
    this.#counter.reports(outcome, { intentId: collection.intentId });
  }
}

function truthOf(collection: Truth | undefined): ReportedOutcome {
  return collection?.hasPaid === true ? "reported_success" : "reported_declined";
}

/** A guest pays while the card reader or the QR is in front of them, whether or not the collection has ended meanwhile. */
function pays(collection: Truth | undefined): void {
  if (collection?.isHandedOver === true && !collection.isOver) collection.hasPaid = true;
}

describe("a guest who may have paid", () => {
  it("any collections of one order: no guest is charged again without the cashier's confirmation", () => {
    let confirmed = 0;
    let refused = 0;
    fc.assert(
      fc.property(fc.array(deed, { minLength: 15, maxLength: 30 }), (deeds) => {
        const guest = new Guest();
        for (const each of deeds) guest.does(each);
        confirmed += guest.confirmed;
        refused += guest.refused;
      }),
      { numRuns: 80 },
    );
    expect(confirmed, "guests who have paid are charged again by confirmation").toBeGreaterThan(2);
    expect(refused, "and the station asks before").toBeGreaterThan(2);
  });
});
