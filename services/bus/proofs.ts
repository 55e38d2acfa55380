/** Proofs that a feed has handled everything that is stored now: it sends a beat and waits until the beat comes back. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { MsgHdrs } from "nats";
import { beatHeaders, beatSubject, contentOf } from "./beats.ts";
import type { Bus } from "./connection.ts";
import { BUS_LIMITS } from "./limits.ts";

export class Proofs {
  readonly #bus: Pick<Bus, "nc">;
  readonly #beats: string;
  /** The proof whose beat is sent next. */
  #next: Promise<boolean> | undefined;
  /** The beats that have not come back, by their content, in the order in which they were first sent. */
  readonly #waiting = new Map<string, () => void>();
  /** The callers whose proof is over and who have not continued yet, in order. */
  readonly #over: (() => void)[] = [];

  /** `beats` are the subjects of the stream's beats, without the last token. */
  constructor(bus: Pick<Bus, "nc">, beats: string) {
    this.#bus = bus;
    this.#beats = beats;
  }

  /** Resolves true when the feed has everything that was stored before this call, false when `proofMs` passes first. */
  async prove(): Promise<boolean> {
    this.#next ??= this.#proveSoon();
    const isProved = await this.#next;
    await this.#turn();
    return isProved;
  }

  /** Call it with each beat that the feed receives. It also proves what was asked before this beat was sent. */
  take(beat: { readonly headers: MsgHdrs | undefined }): void {
    const content = this.#waiting.size > 0 ? contentOf(beat) : "";
    if (!this.#waiting.has(content)) return;
    for (const [one, prove] of this.#waiting) {
      prove();
      if (one === content) return;
    }
  }

  /** Resolves in the next turn that has room for one more caller. */
  async #turn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#over.push(resolve) === 1) setImmediate(() => this.#continue());
    await promise;
  }

  #continue(): void {
    for (const proceed of this.#over.splice(0, BUS_LIMITS.provedPerTurn)) proceed();
    if (this.#over.length > 0) setImmediate(() => this.#continue());
  }

  async #proveSoon(): Promise<boolean> {
    await delay(BUS_LIMITS.shareProofMs);
    // Later calls are not before the beat that follows.
    this.#next = undefined;
    const content = randomUUID();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiting.set(content, () => resolve(true));
    const send = (): void => {
      try {
        this.#bus.nc.publish(beatSubject(this.#beats), "", { headers: beatHeaders(content) });
      } catch {
        // The connection was closed: no proof comes.
      }
    };
    send();
    // The beat of another reader may have replaced this one.
    const again = setInterval(send, BUS_LIMITS.beatMs);
    const timeout = setTimeout(() => resolve(false), BUS_LIMITS.proofMs);
    try {
      return await promise;
    } finally {
      clearInterval(again);
      clearTimeout(timeout);
      this.#waiting.delete(content);
    }
  }
}
