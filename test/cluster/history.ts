/** The records of the clients of a trial, in the order of time. Milliseconds are those of `performance.now()`. */

/** The station id of steps that belong to no station. */
export const NO_STATION = 0;

/** A request with its final answer, after one attempt or several. */
export interface AcknowledgedStep {
  readonly stationId: number;
  /** For example `attest` or `display`. */
  readonly step: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** When its first attempt failed; undefined when no attempt failed. */
  readonly failedAtMs: number | undefined;
}

/** A wrong error that a client treats as final. */
export interface WrongError {
  readonly stationId: number;
  readonly step: string;
  readonly atMs: number;
  readonly gateway: string;
  readonly status: number;
  readonly text: string;
}

/** One answer to a poll of a display. */
export interface Shown {
  readonly stationId: number;
  readonly gateway: string;
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
  readonly state: string;
  /** The number of the order at its station; 0 without an order. */
  readonly orderDisplayNumber: number;
}

/** An order that was certainly open between these two moments. */
export interface OpenOrder {
  readonly stationId: number;
  readonly orderDisplayNumber: number;
  /** When its opening was acknowledged as effective, and when the request that could end it was sent. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** One answer to a poll of a companion while a collection waited for it. */
export interface Fetched {
  readonly stationId: number;
  readonly gateway: string;
  readonly askedAtMs: number;
  /** Undefined when the answer had no collection. */
  readonly intentId: number | undefined;
  /** The waiting collection, and when its creation was acknowledged. */
  readonly handed: { readonly intentId: number; readonly atMs: number };
}

/** A collection whose end was acknowledged to the cashier. */
export interface EndedCollection {
  readonly stationId: number;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
  readonly route: string;
  readonly amountMinor: number;
  readonly intentId: number;
  readonly end: "paid" | "cancelled";
  readonly transactionId: number | undefined;
  /** The steps that were acknowledged, as the events that the log must have for them. */
  readonly events: readonly string[];
  readonly acknowledgedAtMs: number;
}

export class History {
  readonly steps: AcknowledgedStep[] = [];
  readonly wrongErrors: WrongError[] = [];
  readonly shown: Shown[] = [];
  readonly opened: OpenOrder[] = [];
  readonly fetched: Fetched[] = [];
  readonly ended: EndedCollection[] = [];
  /** Stations whose request had no final answer within the limit of the clients. */
  readonly stuck: string[] = [];
  /** How many answers asked for a later repetition, and how many connections broke, by kind. */
  readonly later = new Map<string, number>();
  readonly #faults: { readonly name: string; readonly atMs: number }[] = [];

  /** Records that a fault begins now. */
  beginFault(name: string): void {
    this.#faults.push({ name, atMs: performance.now() });
  }

  /** The end of a sentence, which names the newest fault at that moment. It is empty before the first fault. */
  duringFault(atMs: number): string {
    const fault = this.#faults.findLast((one) => one.atMs <= atMs);
    return fault === undefined ? "" : ` (${fault.name})`;
  }

  countLater(kind: string): void {
    this.later.set(kind, (this.later.get(kind) ?? 0) + 1);
  }
}
