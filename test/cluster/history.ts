/** What the clients of a trial saw, in the order of time. Milliseconds are those of `performance.now()`. */

/** The station of steps that belong to none. */
export const NO_STATION = 0;

/** A request that was answered for good, after as many attempts as it took. */
export interface AcknowledgedStep {
  readonly stationId: number;
  /** For example `attest` or `display`. */
  readonly step: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** When its first attempt failed; undefined when none did. */
  readonly failedAtMs: number | undefined;
}

/** A wrong answer that a client takes for final. */
export interface WrongError {
  readonly stationId: number;
  readonly step: string;
  readonly atMs: number;
  readonly gateway: string;
  readonly status: number;
  readonly text: string;
}

/** What a device was shown. */
export interface Shown {
  readonly stationId: number;
  readonly gateway: string;
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
  readonly state: string;
  /** 0: no order. A station counts its orders. */
  readonly orderDisplayNumber: number;
}

/** An order that was open for certain between these moments. */
export interface OpenOrder {
  readonly stationId: number;
  readonly orderDisplayNumber: number;
  /** When its opening was acknowledged as effective, and when the request that could end it was sent. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** What a companion was given while its station waited for it to fetch a collection. */
export interface Fetched {
  readonly stationId: number;
  readonly gateway: string;
  readonly askedAtMs: number;
  /** Undefined: nothing. */
  readonly intentId: number | undefined;
  /** The collection, and when its creation was acknowledged. */
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
  /** Stations whose request was not answered for good within the clients' limit. */
  readonly stuck: string[] = [];
  /** Answers that ask for a later repetition, and broken connections, by kind. */
  readonly later = new Map<string, number>();
  readonly #faults: { readonly name: string; readonly atMs: number }[] = [];

  /** Notes that a fault begins now. */
  beginFault(name: string): void {
    this.#faults.push({ name, atMs: performance.now() });
  }

  /** The end of a sentence that names the newest fault at that moment; empty before the first one. */
  duringFault(atMs: number): string {
    const fault = this.#faults.findLast((one) => one.atMs <= atMs);
    return fault === undefined ? "" : ` (${fault.name})`;
  }

  countLater(kind: string): void {
    this.later.set(kind, (this.later.get(kind) ?? 0) + 1);
  }
}
