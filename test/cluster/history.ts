/** The records of the clients of a trial, in the order of time. Milliseconds are those of `performance.now()`. */
import type { Fault } from "./faults.ts";

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
  readonly amount: string;
  readonly currency: string;
  readonly qrPayload: string;
  readonly intentStatus: string;
}

/** The collection of an order had at least this status when this was acknowledged to the cashier or the companion. */
export interface Progress {
  readonly stationId: number;
  readonly orderDisplayNumber: number;
  readonly intentStatus: "created" | "presented" | "processing";
  readonly atMs: number;
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
  readonly assignment: { readonly intentId: number; readonly amount: string; readonly currency: string } | undefined;
  /** The waiting collection, and when its creation was acknowledged. */
  readonly handed: { readonly intentId: number; readonly amountMinor: number; readonly atMs: number };
}

/** The course of a collection by QR. */
export interface QrCourse {
  /** When the cashier sent the request for it, and when that was acknowledged. */
  readonly askedAtMs: number;
  readonly createdAtMs: number;
  /** Why the provider's side ended it, or empty. */
  readonly endReason: string;
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
  /** What its transaction must have: what the companion reported, the cashier entered, or the provider's answer named. */
  readonly reference: string;
  /** Undefined on the other routes. */
  readonly qr: QrCourse | undefined;
  /** The steps that were acknowledged, as the events that the log must have for them. */
  readonly events: readonly string[];
  readonly acknowledgedAtMs: number;
}

/** A fault that has begun; the next one ends it. */
export interface BegunFault extends Pick<Fault, "withinMs" | "qrs"> {
  readonly name: string;
  readonly atMs: number;
}

export class History {
  readonly steps: AcknowledgedStep[] = [];
  readonly wrongErrors: WrongError[] = [];
  readonly shown: Shown[] = [];
  readonly progressed: Progress[] = [];
  readonly opened: OpenOrder[] = [];
  readonly fetched: Fetched[] = [];
  readonly ended: EndedCollection[] = [];
  /** Stations whose request had no final answer within the limit of the clients. */
  readonly stuck: string[] = [];
  /** How many answers asked for a later repetition, and how many connections broke, by kind. */
  readonly later = new Map<string, number>();
  readonly #faults: BegunFault[] = [];

  /** Records that a fault begins, by default now. */
  beginFault({ name, target, withinMs, qrs }: Omit<Fault, "run">, atMs = performance.now()): void {
    this.#faults.push({ name: `${name}, ${target}`, withinMs, qrs, atMs });
  }

  /** The faults between these moments, each with the time until the next one begins. */
  faultsBetween(fromMs: number, toMs: number): readonly BegunFault[] {
    return this.#faults.filter(
      ({ atMs }, index) => atMs <= toMs && (this.#faults[index + 1]?.atMs ?? Number.POSITIVE_INFINITY) > fromMs,
    );
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
