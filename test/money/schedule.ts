/** The schedule of one run: who does what, in which order and with which pauses. fast-check generates and replays it. */
import * as fc from "fast-check";

/** With plain objects, a printed schedule can be pasted into a test. */
const PLAIN = { noNullPrototype: true } as const;

const ROUTES = ["cash", "attested_terminal", "smart_pos", "dynamic_qr"] as const;

const MEANWHILE = ["nothing", "voided", "changed_and_back", "paid_by_unregistered_payment"] as const;

/** A step names an order by its index in the filial, and a collection by the number of later ones. */
export type CashierStep = { readonly pauseMs: number } & (
  | {
      readonly do: "collect";
      readonly route: (typeof ROUTES)[number];
      readonly order: number;
      readonly lifetimeMs: number;
      readonly confirms: boolean;
      readonly ending: "attest" | "cancel" | "attest_and_cancel" | "leave";
      readonly afterMs: number;
      /** What happens to the order while it is being collected. */
      readonly meanwhile: (typeof MEANWHILE)[number];
    }
  | { readonly do: "attest" | "cancel"; readonly newest: number }
  | { readonly do: "void" | "change_and_back"; readonly order: number }
  | { readonly do: "repeat"; readonly newest: number }
  | { readonly do: "hand_over" }
);

const GUEST_ACTS = [
  "pays",
  "pays_with_many_callbacks",
  "pays_twice",
  "pays_after_the_end",
  "wrong_amount",
  "wrong_currency",
  "wrong_account",
  "unregistered",
  "same_money_without_reference",
  "same_money_for_another",
  "asserted_at_the_twin",
  "asserted_for_the_twins_qr",
  "wrong_then_right",
  "declines",
  "pays_then_declines",
  "sends_an_unknown_type",
  "forges",
] as const;
export type GuestAct = (typeof GUEST_ACTS)[number];

export interface GuestStep {
  readonly act: GuestAct;
  readonly afterMs: number;
}

export interface CompanionPlan {
  readonly presents: boolean;
  readonly outcomes: readonly ("reported_success" | "reported_declined" | "reported_cancelled" | "reported_unknown")[];
  readonly afterMs: number;
}

const OPERATOR_ACTS = [
  "its_order",
  "other_order",
  "two_orders_at_once",
  "attribute_and_close",
  "close",
  "leave",
] as const;

export interface FilialPlan {
  readonly currency: "EUR" | "USD" | "JPY";
  readonly amountsMinor: readonly number[];
  /** Two tablets of the lease's holder. */
  readonly tablets: readonly [readonly CashierStep[], readonly CashierStep[]];
  /** What the guests of the first, second, … QR collection do. After the last entry, the first one is used again. */
  readonly guests: readonly (readonly GuestStep[])[];
  readonly companion: readonly CompanionPlan[];
  /** What the operator does with the first, second, … issue. */
  readonly operator: readonly (typeof OPERATOR_ACTS)[number][];
}

export interface Strike {
  readonly kills: "first_host" | "second_host" | "both_hosts" | "providers";
  /** At once, at the next commit that settles, or when the next confirmation is stored. */
  readonly at: "once" | "settling" | "confirming";
  readonly afterMs: number;
}

/** `suspended_device`: the owner suspends the companion, which is no kill switch. */
export const FREEZES = ["provider", "station", "organization", "platform", "device", "suspended_device"] as const;

export interface Freeze {
  readonly what: (typeof FREEZES)[number];
  /** Whether the step first ends a freeze. There may be none, or it may be that of another step. */
  readonly thawsFirst: boolean;
  readonly filial: number;
  readonly afterMs: number;
  readonly forMs: number;
}

export interface Schedule {
  readonly filials: readonly FilialPlan[];
  /** Whether the last filial has a config of the same merchant account as the filial before it. */
  readonly twins: boolean;
  readonly strikes: readonly Strike[];
  readonly freezes: readonly Freeze[];
}

const FILIALS = 5;
const pauseMs = fc.nat(150);
const order = fc.nat(3);
const newest = fc.nat(2);
const meanwhile = fc.constantFrom("nothing" as const, "nothing" as const, "nothing" as const, ...MEANWHILE);

// These deadlines are below the gateway's minimum, so that they pass during the other steps.
const collectByAnyRoute = fc.record(
  {
    do: fc.constant("collect" as const),
    pauseMs,
    route: fc.constantFrom(...ROUTES),
    order,
    lifetimeMs: fc.constantFrom(300, 700, 1_500, 30_000),
    confirms: fc.boolean(),
    ending: fc.constantFrom("attest", "attest", "cancel", "attest_and_cancel", "leave"),
    afterMs: fc.nat(300),
    meanwhile,
  },
  PLAIN,
);
/** Mostly, the cashier leaves the rest to the guest, as at a real counter. */
const collectByQr = fc.record(
  {
    do: fc.constant("collect" as const),
    pauseMs,
    route: fc.constant("dynamic_qr" as const),
    order,
    lifetimeMs: fc.constantFrom(500, 1_500, 3_000),
    confirms: fc.boolean(),
    ending: fc.constantFrom("leave", "leave", "leave", "cancel", "attest_and_cancel"),
    afterMs: fc.nat(600),
    meanwhile,
  },
  PLAIN,
);

const cashierStep: fc.Arbitrary<CashierStep> = fc.oneof(
  { weight: 4, arbitrary: collectByQr },
  { weight: 4, arbitrary: collectByAnyRoute },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("attest", "cancel"), pauseMs, newest }, PLAIN) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("void", "change_and_back", "change_and_back"), pauseMs, order }, PLAIN),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("repeat" as const), pauseMs, newest }, PLAIN) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("hand_over" as const), pauseMs }, PLAIN) },
);

const guestStep = fc.record(
  {
    act: fc.oneof(
      { weight: 1, arbitrary: fc.constant("pays" as const) },
      { weight: 2, arbitrary: fc.constantFrom(...GUEST_ACTS) },
    ),
    afterMs: fc.oneof(fc.constant(0), fc.nat(400)),
  },
  PLAIN,
);

const companionPlan = fc.record(
  {
    presents: fc.boolean(),
    outcomes: fc.array(
      fc.constantFrom(
        "reported_success",
        "reported_success",
        "reported_declined",
        "reported_cancelled",
        "reported_unknown",
      ),
      { minLength: 1, maxLength: 2 },
    ),
    afterMs: fc.nat(300),
  },
  PLAIN,
);

const filialPlan: fc.Arbitrary<FilialPlan> = fc.record(
  {
    currency: fc.constantFrom("EUR", "EUR", "USD", "JPY"),
    // There are only two amounts, so that the payment of one order often matches another order.
    amountsMinor: fc.array(fc.constantFrom(700, 1_250), { minLength: 4, maxLength: 4 }),
    tablets: fc.tuple(
      fc.array(cashierStep, { minLength: 2, maxLength: 6 }),
      fc.array(cashierStep, { minLength: 1, maxLength: 4 }),
    ),
    guests: fc.array(fc.array(guestStep, { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 5 }),
    companion: fc.array(companionPlan, { minLength: 1, maxLength: 3 }),
    operator: fc.array(fc.constantFrom(...OPERATOR_ACTS), { minLength: 2, maxLength: 6 }),
  },
  PLAIN,
);

export const schedule: fc.Arbitrary<Schedule> = fc.record(
  {
    filials: fc.array(filialPlan, { minLength: FILIALS, maxLength: FILIALS }),
    twins: fc.boolean(),
    strikes: fc.array(
      fc.record(
        {
          kills: fc.constantFrom("first_host", "second_host", "both_hosts", "providers", "providers"),
          at: fc.constantFrom("once", "settling", "settling", "confirming", "confirming"),
          afterMs: fc.nat(300),
        },
        PLAIN,
      ),
      { minLength: 1, maxLength: 2 },
    ),
    freezes: fc.array(
      fc.record(
        {
          what: fc.constantFrom("provider", ...FREEZES),
          thawsFirst: fc.boolean(),
          filial: fc.nat(FILIALS - 1),
          afterMs: fc.nat(800),
          forMs: fc.integer({ min: 50, max: 500 }),
        },
        PLAIN,
      ),
      { maxLength: 6 },
    ),
  },
  PLAIN,
);

const collecting = { do: "collect", pauseMs: 0, confirms: true, afterMs: 100, meanwhile: "nothing" } as const;
const byQr = { ...collecting, route: "dynamic_qr", lifetimeMs: 1_500, ending: "leave" } as const;
const byHand = { ...collecting, lifetimeMs: 30_000, ending: "attest" } as const;
const pays: readonly GuestStep[] = [{ act: "pays", afterMs: 0 }];
const quiet = { currency: "EUR", amountsMinor: [700, 700, 700, 700], companion: [], operator: ["its_order"] } as const;

/** The first run of the fixed seed: each route settles an order, and hosts are killed during a call of the seam. */
export const STORY: Schedule = {
  filials: [
    {
      ...quiet,
      tablets: [
        [
          { ...byHand, route: "cash", order: 0 },
          { ...byHand, route: "attested_terminal", order: 1 },
        ],
        [],
      ],
      guests: [],
    },
    {
      ...quiet,
      tablets: [
        [
          { ...byHand, route: "smart_pos", order: 0 },
          { ...byHand, route: "cash", order: 1 },
        ],
        [],
      ],
      guests: [],
      companion: [{ presents: true, outcomes: ["reported_success"], afterMs: 50 }],
    },
    {
      ...quiet,
      tablets: [
        [
          { ...byQr, order: 0 },
          { ...byQr, order: 1, pauseMs: 1_600 },
        ],
        [],
      ],
      guests: [pays, [{ act: "same_money_for_another", afterMs: 0 }]],
    },
    {
      ...quiet,
      tablets: [
        [
          { ...byHand, route: "cash", order: 0, meanwhile: "voided" },
          { ...byQr, order: 1 },
        ],
        [],
      ],
      guests: [[{ act: "asserted_for_the_twins_qr", afterMs: 0 }]],
    },
  ],
  twins: true,
  strikes: [
    { kills: "both_hosts", at: "settling", afterMs: 0 },
    { kills: "providers", at: "confirming", afterMs: 0 },
  ],
  // The freezes begin when the first collections have ended, because a freeze would refuse them.
  freezes: FREEZES.map((what, nth) => ({
    what,
    thawsFirst: nth % 2 === 1,
    filial: 3,
    afterMs: 500 + 100 * nth,
    forMs: 50,
  })),
};
