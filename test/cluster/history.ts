/** What the clients of a trial saw, in the order of time. Milliseconds are those of `performance.now()`. */

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

/** An answer that a client takes for final although the service was wrong. */
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
  readonly state: string;
  readonly orderDisplayNumber: number;
}

/** A collection whose end was acknowledged to the cashier. */
export interface EndedCollection {
  readonly stationId: number;
  readonly orderId: number;
  readonly orderDisplayNumber: number;
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
  readonly ended: EndedCollection[] = [];
  /** Stations whose request was not answered for good within the clients' limit. */
  readonly stuck: string[] = [];
  /** Answers that ask for a later repetition, and broken connections, by kind. */
  readonly later = new Map<string, number>();

  countLater(kind: string): void {
    this.later.set(kind, (this.later.get(kind) ?? 0) + 1);
  }

  /** The slowest good answer of those between these two moments, with all attempts that it took. */
  slowestMs(fromMs: number, toMs: number): number {
    const during = this.steps.filter(({ startedAtMs, endedAtMs }) => endedAtMs >= fromMs && startedAtMs <= toMs);
    return Math.max(0, ...during.map(({ startedAtMs, endedAtMs }) => endedAtMs - startedAtMs));
  }

  /** The longest time without success of each station whose requests failed between these two moments. */
  outages(fromMs: number, toMs: number, isOfKind: (step: string) => boolean): Map<number, number> {
    const longest = new Map<number, number>();
    for (const { stationId, step, failedAtMs, endedAtMs } of this.steps) {
      if (failedAtMs === undefined || endedAtMs < fromMs || failedAtMs > toMs || !isOfKind(step)) continue;
      longest.set(stationId, Math.max(longest.get(stationId) ?? 0, endedAtMs - failedAtMs));
    }
    return longest;
  }
}

/** A display may show what was true this long ago (contract, "Poll around every two seconds"; invariant I8). */
export const STALE_AFTER_MS = 1_500;

/** Answers that showed a collection as open after its end had been acknowledged. */
export function staleAnswers({ shown, ended }: History): string[] {
  const ends = new Map(ended.map((one) => [`${one.stationId} ${one.orderDisplayNumber}`, one]));
  return shown.flatMap(({ stationId, gateway, askedAtMs, state, orderDisplayNumber }) => {
    const end = ends.get(`${stationId} ${orderDisplayNumber}`);
    const lateMs = end === undefined ? 0 : askedAtMs - end.acknowledgedAtMs;
    const isStale = end?.end === "paid" && state !== "paid" && lateMs > STALE_AFTER_MS;
    return isStale
      ? [
          `${gateway} showed "${state}" of order ${orderDisplayNumber} at station ${stationId} ${lateMs} ms after it was paid.`,
        ]
      : [];
  });
}
