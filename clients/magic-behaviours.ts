/**
 * The behaviours of the virtual companion: the name of its device chooses one, or else the amount. This table is data: the
 * documentation and the command line print it. The ending of an amount has the same meaning as at the sandbox provider. Faults
 * of a provider payment (a wrong amount, currency, reference or account) have no row, because a device reports no amounts.
 */
import type { OutcomeWord } from "./device-kit/client.ts";

/** The report of a simulated payment. */
interface MagicReport {
  readonly outcome: OutcomeWord;
  /** A response code as a payment application would return it, similar to ISO 8583, field 39. */
  readonly providerCode: string;
}

interface MagicBehaviour {
  readonly behaviour: string;
  /** The last words of the device's name, in any case. */
  readonly nameEnding: string;
  /** The last two digits of the amount, as at the sandbox provider; null when only a name chooses the behaviour. */
  readonly amountEnding: string | null;
  /** The companion's report of a collection; null when it reports nothing. */
  readonly report: MagicReport | null;
  /** What the companion does. */
  readonly companion: string;
  /** The result for the collection. */
  readonly outcome: string;
}

const APPROVAL: MagicReport = { outcome: "reported_success", providerCode: "00" };

export const MAGIC_BEHAVIOURS = [
  {
    behaviour: "approve",
    nameEnding: "approves",
    amountEnding: null,
    report: APPROVAL,
    companion: "reports a success, whatever the amount",
    outcome: "the intent is processing with reported_success until the cashier attests or cancels",
  },
  {
    behaviour: "decline",
    nameEnding: "declines",
    amountEnding: "01",
    report: { outcome: "reported_declined", providerCode: "05" },
    companion: "reports a decline with the code 05",
    outcome: "the intent is processing with reported_declined until the cashier attests or cancels",
  },
  {
    behaviour: "buyer_cancel",
    nameEnding: "cancels",
    amountEnding: "02",
    report: { outcome: "reported_cancelled", providerCode: "17" },
    companion: "reports that the buyer has cancelled, with the code 17",
    outcome: "the intent is processing with reported_cancelled until the cashier attests or cancels",
  },
  {
    behaviour: "never_answers",
    nameEnding: "never answers",
    amountEnding: "03",
    report: null,
    companion: "takes the collection and reports nothing",
    outcome:
      "the intent stays presented and expires, unless the cashier decides; then another collection of the order needs the cashier's confirmation (handoff_presented)",
  },
  {
    behaviour: "report_twice",
    nameEnding: "reports twice",
    amountEnding: "04",
    report: APPROVAL,
    companion: "reports the same success twice under the same key",
    outcome: "one report is kept and both get the same answer; else as with approves",
  },
  {
    behaviour: "go_offline",
    nameEnding: "goes offline",
    amountEnding: "05",
    report: null,
    companion: "takes the collection and is silent until its deadline has passed",
    outcome:
      "smart_pos is withdrawn with device_offline, the intent expires, and then the route is offered again; another collection of the order needs the cashier's confirmation (handoff_presented)",
  },
  {
    behaviour: "late_success",
    nameEnding: "reports late",
    amountEnding: "06",
    report: APPROVAL,
    companion: "reports a success as soon as the collection was cancelled or has expired",
    outcome:
      "409 intent_not_actionable, but the evidence is kept; another collection needs the cashier's confirmation (late_success)",
  },
  {
    behaviour: "late_decline",
    nameEnding: "declines late",
    amountEnding: null,
    report: { outcome: "reported_declined", providerCode: "05" },
    companion: "reports a decline as soon as the collection was cancelled or has expired",
    outcome:
      "409 intent_not_actionable, but the evidence is kept; another collection needs the cashier's confirmation until the decline has come, and none from then on",
  },
  {
    behaviour: "unknown",
    nameEnding: "does not know",
    amountEnding: "12",
    report: { outcome: "reported_unknown", providerCode: "68" },
    companion: "reports an unknown outcome with the code 68",
    outcome:
      "processing with reported_unknown; after a cancel, another collection needs the cashier's confirmation (outcome_unknown)",
  },
  {
    behaviour: "provider_down",
    nameEnding: "has no provider",
    amountEnding: "13",
    report: { outcome: "reported_declined", providerCode: "91" },
    companion: "reports a decline with the code 91: its payment application has no connection",
    outcome: "the intent is processing with reported_declined until the cashier attests or cancels",
  },
  {
    behaviour: "never_poll",
    nameEnding: "never polls",
    amountEnding: null,
    report: null,
    companion: "sends heartbeats and never asks for its assignment",
    outcome:
      "smart_pos is offered, the companion is shown as not_polling, and an intent stays created until it expires",
  },
  {
    behaviour: "stay_offline",
    nameEnding: "is offline",
    amountEnding: null,
    report: null,
    companion: "sends no heartbeat and never asks for its assignment",
    outcome: "smart_pos is not offered: device_offline",
  },
] as const satisfies readonly MagicBehaviour[];

/** The behaviour for every other name and amount. */
export const DEFAULT_BEHAVIOUR = "approve";
export type Behaviour = (typeof MAGIC_BEHAVIOURS)[number]["behaviour"];

/** The behaviour that a device's name chooses; undefined when it chooses none. */
export function namedBehaviour(deviceName: string): Behaviour | undefined {
  const words = ` ${wordsOf(deviceName)}`;
  return MAGIC_BEHAVIOURS.find(({ nameEnding }) => words.endsWith(` ${nameEnding}`))?.behaviour;
}

/** What the companion does with a collection; `amount` is the decimal string of its assignment. */
export function behaviourOf(deviceName: string, amount: string): Behaviour {
  const named = namedBehaviour(deviceName);
  if (named !== undefined) return named;
  const ending = amount.replaceAll(/\D/g, "").padStart(2, "0").slice(-2);
  return MAGIC_BEHAVIOURS.find(({ amountEnding }) => amountEnding === ending)?.behaviour ?? DEFAULT_BEHAVIOUR;
}

/** What a behaviour reports; null when it reports nothing. */
export function reportOf(behaviour: Behaviour): MagicReport | null {
  return MAGIC_BEHAVIOURS.find((magic) => magic.behaviour === behaviour)?.report ?? null;
}

/** The words of a name, separated by single spaces: "Till_3 - DECLINES" ends in the word "declines". */
function wordsOf(name: string): string {
  return name
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
    .join(" ");
}
