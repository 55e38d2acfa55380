/** The plan of one QR collection. The last two digits of its amount control the sandbox provider (docs/sandbox.md). */
import { MAGIC_AMOUNTS, type Scenario } from "../../services/sandbox-provider/magic-amounts.ts";
import type { CollectionPlan } from "./collection-plan.ts";
import type { Random } from "./random.ts";

export interface QrPlan {
  readonly route: "dynamic_qr";
  readonly scenario: Scenario;
  /**
   * The end for which the clients wait: the payment, the provider's decline, the first of these two, the cashier's
   * cancellation, a cancellation at the time of the guest's payment, or the deadline.
   */
  readonly ending: "qr_paid" | "qr_declined" | "qr_overtaken" | "qr_cancelled" | "qr_raced" | "qr_abandoned";
  /** The time from the creation to the cancellation, if there is one. */
  readonly cancelAfterMs: number;
  readonly twice: boolean;
  /** Price of the one line, in minor units. */
  readonly amountMinor: number;
}

export function isQr(plan: CollectionPlan | QrPlan): plan is QrPlan {
  return plan.route === "dynamic_qr";
}

type Kind = Pick<QrPlan, "scenario" | "ending">;
/** The kinds of plans. Each is drawn equally often. */
const KINDS: readonly Kind[] = [
  { scenario: "approve", ending: "qr_paid" },
  { scenario: "approve", ending: "qr_paid" },
  { scenario: "duplicate_callback", ending: "qr_paid" },
  { scenario: "out_of_order", ending: "qr_overtaken" },
  { scenario: "early_callback", ending: "qr_paid" },
  { scenario: "lost_callback", ending: "qr_paid" },
  { scenario: "double_payment", ending: "qr_paid" },
  { scenario: "stray_money", ending: "qr_paid" },
  { scenario: "decline", ending: "qr_declined" },
  { scenario: "buyer_cancel", ending: "qr_declined" },
  { scenario: "late_success", ending: "qr_cancelled" },
  { scenario: "wrong_amount", ending: "qr_cancelled" },
  { scenario: "wrong_reference", ending: "qr_cancelled" },
  { scenario: "approve", ending: "qr_raced" },
  { scenario: "approve", ending: "qr_raced" },
  { scenario: "early_callback", ending: "qr_raced" },
  { scenario: "lost_callback", ending: "qr_raced" },
];
const ABANDONED: readonly Kind[] = [
  { scenario: "never_pays", ending: "qr_abandoned" },
  { scenario: "late_success", ending: "qr_abandoned" },
];
/** The guest pays about 700 ms after the QR. The cancellation comes before the payment, at the same time, or after it. */
const LONGEST_BEFORE_CANCEL_MS = 1_600;

export function drawQrPlans(random: Random, count: number): QrPlan[] {
  const plans: QrPlan[] = [];
  while (plans.length < count) {
    for (const kind of random.shuffled(KINDS)) if (plans.length < count) plans.push(qrPlan(random, kind));
  }
  return plans;
}

export function abandonedQrPlan(random: Random, nth: number): QrPlan {
  return qrPlan(random, ABANDONED[nth % ABANDONED.length] as Kind);
}

export function qrPlan(random: Random, { scenario, ending }: Kind): QrPlan {
  const magic = MAGIC_AMOUNTS.find((amount) => amount.scenario === scenario)?.ending ?? "50";
  return {
    route: "dynamic_qr",
    scenario,
    ending,
    cancelAfterMs: random.between(0, LONGEST_BEFORE_CANCEL_MS),
    twice: random.chance(0.2),
    amountMinor: random.between(1, 999) * 100 + Number(magic),
  };
}
