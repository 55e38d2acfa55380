/**
 * What the sandbox provider does for which amount: its last two digits decide. Any other amount is approved. This table is
 * data: the documentation and the command line print it.
 */
import { formatAmount } from "../../machines/currency.ts";

interface MagicAmount {
  /** The last two digits of the amount: 12.01 ends in 01, and so does JPY 1201. */
  readonly ending: string;
  readonly scenario: string;
  /** What the provider does. */
  readonly provider: string;
  /** How the collection ends. */
  readonly outcome: string;
}

export const MAGIC_AMOUNTS = [
  {
    ending: "01",
    scenario: "decline",
    provider: "declines after a short delay",
    outcome: "the intent is cancelled with payment_declined",
  },
  {
    ending: "02",
    scenario: "buyer_cancel",
    provider: "reports that the buyer has cancelled",
    outcome: "the intent is cancelled with buyer_cancelled",
  },
  {
    ending: "03",
    scenario: "never_pays",
    provider: "waits for the guest page until the deadline",
    outcome: "the intent expires, unless the guest decides on the guest page",
  },
  {
    ending: "04",
    scenario: "duplicate_callback",
    provider: "approves and sends the same callback three times",
    outcome: "paid once; each callback gets the same answer",
  },
  {
    ending: "06",
    scenario: "late_success",
    provider: "pays shortly after it was cancelled or has expired",
    outcome: "an issue late_money; the order stays as it is",
  },
  {
    ending: "07",
    scenario: "wrong_amount",
    provider: "takes one whole unit of the currency too much",
    outcome:
      "an issue amount_over; the intent stays unpaid, its QR is shown no longer, and another collection of the order needs the cashier's confirmation",
  },
  {
    ending: "08",
    scenario: "wrong_currency",
    provider: "takes the amount in another currency",
    outcome:
      "an issue currency_mismatch; the intent stays unpaid, its QR is shown no longer, and another collection of the order needs the cashier's confirmation",
  },
  {
    ending: "09",
    scenario: "wrong_reference",
    provider: "names an unknown reference",
    outcome:
      "an issue reference_mismatch; the intent stays unpaid, its QR is shown no longer, and another collection of the order needs the cashier's confirmation",
  },
  {
    ending: "11",
    scenario: "wrong_account",
    provider: "pays to another account",
    outcome:
      "an issue account_mismatch; the intent stays unpaid, its QR is shown no longer, and another collection of the order needs the cashier's confirmation",
  },
  {
    ending: "12",
    scenario: "unknown",
    provider: "does not know what became of the payment, whenever it is asked",
    outcome: "the intent expires; another collection of the order needs the cashier's confirmation",
  },
  {
    ending: "13",
    scenario: "provider_down",
    provider: "answers 503 when a payment is asked for",
    outcome: "the intent is cancelled with provider_unavailable",
  },
  {
    ending: "14",
    scenario: "provider_hangs",
    provider: "never answers when a payment is asked for",
    outcome: "the intent is cancelled with provider_timed_out",
  },
  {
    ending: "16",
    scenario: "refuse",
    provider: "refuses the payment",
    outcome: "the intent is cancelled with provider_refused",
  },
  {
    ending: "17",
    scenario: "garbage",
    provider: "answers with something that is not its documented shape",
    outcome: "the intent is cancelled with provider_answer_invalid",
  },
  {
    ending: "18",
    scenario: "out_of_order",
    provider: "approves, then sends an older decline and an event of an unknown kind",
    outcome: "paid; what came late changes nothing",
  },
  {
    ending: "19",
    scenario: "lost_callback",
    provider: "approves and sends no callback",
    outcome: "paid as soon as the status poll has found it",
  },
  {
    ending: "21",
    scenario: "early_callback",
    provider: "approves at once; its callback overtakes the answer with the QR",
    outcome: "paid",
  },
  {
    ending: "22",
    scenario: "double_payment",
    provider: "takes the money twice",
    outcome: "paid once, and an issue duplicate_money",
  },
  {
    ending: "23",
    scenario: "stray_money",
    provider: "approves, and sends a callback about a payment that was never registered",
    outcome: "paid, and an issue unmatched_money",
  },
] as const satisfies readonly MagicAmount[];

/** What happens for every other amount. */
export const DEFAULT_SCENARIO = "approve";
export type Scenario = (typeof MAGIC_AMOUNTS)[number]["scenario"] | typeof DEFAULT_SCENARIO;

/**
 * The scenario that an amount asks for. Its last two digits are those of the API's decimal string: minor units of a currency
 * with three decimals always end in zero.
 */
export function scenarioOf(amountMinor: string, currency: string): Scenario {
  const ending = formatAmount(amountMinor, currency).replace(".", "").padStart(2, "0").slice(-2);
  return MAGIC_AMOUNTS.find((magic) => magic.ending === ending)?.scenario ?? DEFAULT_SCENARIO;
}
