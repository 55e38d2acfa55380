/** The plan of one collection, drawn from a seed. */
import type { ReportedOutcome, Route } from "../../machines/payment-intent.ts";
import type { Random } from "./random.ts";

export interface CollectionPlan {
  readonly route: Exclude<Route, "dynamic_qr">;
  /** The companion's reports in their order. Each has a reference unless it is a decline. */
  readonly outcomes: readonly ReportedOutcome[];
  /**
   * The end: paid, cancelled by the cashier, refused because the order changed while the guest paid, or at its deadline without
   * a command.
   */
  readonly ending: "paid" | "cancelled" | "changed" | "abandoned";
  /** Whether the cashier sends the last command twice at once. */
  readonly twice: boolean;
  /** Price of the one line, in minor units. */
  readonly amountMinor: number;
}

const SUCCESS = ["reported_success"] as const;

export function drawPlan(random: Random): CollectionPlan {
  const amountMinor = random.between(1, 99_999);
  const twice = random.chance(0.2);
  const draw = random.next();
  const smartPos = { route: "smart_pos", twice, amountMinor } as const;
  if (draw < 0.52) return { ...smartPos, outcomes: SUCCESS, ending: "paid" };
  if (draw < 0.62) return { ...smartPos, outcomes: ["reported_unknown", "reported_success"], ending: "paid" };
  if (draw < 0.68) return { ...smartPos, outcomes: ["reported_declined"], ending: "paid" };
  if (draw < 0.74) return { ...smartPos, outcomes: ["reported_cancelled"], ending: "cancelled" };
  if (draw < 0.78) return { ...smartPos, outcomes: [], ending: "cancelled" };
  if (draw < 0.82) return { ...smartPos, outcomes: SUCCESS, ending: "changed" };
  const outcomes = [] as const;
  if (draw < 0.94) return { route: "cash", outcomes, ending: "paid", twice, amountMinor };
  return { route: "attested_terminal", outcomes, ending: "paid", twice, amountMinor };
}

/** A collection that no one ends, so it ends at its deadline. */
export function abandonedPlan(random: Random): CollectionPlan {
  return {
    route: "smart_pos",
    outcomes: [],
    ending: "abandoned",
    twice: false,
    amountMinor: random.between(1, 99_999),
  };
}
