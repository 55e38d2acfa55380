/**
 * The second proof of how current a replica is, for the buckets that the relay alone writes (design §2.2). While such a
 * bucket elects its leader no beat comes back (`beats.ts`), and nothing can be stored in it either. A change counts as
 * effective only after the relay has noted in PostgreSQL where it is stored. So PostgreSQL has the newest effective
 * entry:
 *
 *   reader ── asks, with its own time ──► any relay ──► PostgreSQL: the newest entry that was noted
 *   reader has read as far as that ──► it has everything that was effective when it asked
 *
 * Readers ask only while their beats are late. The relay deletes old notes, so a proof counts only for a limited time
 * after the newest beat. The reader already has what was effective before that beat.
 */
import type { NatsConnection } from "nats";
import { every } from "../runtime/every.ts";
import { ageOf, type Moment, NEVER, now } from "./beats.ts";
import { BUS_LIMITS } from "./limits.ts";
import { readDelivered } from "./messages/outbox.ts";
import { call } from "./operation.ts";

interface Answered {
  readonly askedAt: Moment;
  /** The sequence that the reader must reach. */
  readonly sequence: number;
}

interface DeliveredDeps {
  readonly bus: { readonly nc: NatsConnection; isUp(): boolean };
  readonly stream: string;
  /** The sequence of the newest message that the reader has read. */
  readonly sequence: () => number;
  readonly beatAgeMs: () => number;
}

/** The proofs of one reader of one bucket. */
export class Delivered {
  readonly #deps: DeliveredDeps;
  readonly #stopAsking: () => void;
  #provedAt: Moment = NEVER;
  /** The newest answer, until the reader has reached its sequence. */
  #answered: Answered | undefined;
  #isAsking = false;

  constructor(deps: DeliveredDeps) {
    this.#deps = deps;
    this.#stopAsking = every(BUS_LIMITS.deliveredAskMs, () => void this.#ask());
  }

  stop(): void {
    this.#stopAsking();
  }

  /** The reader has everything that was effective this long ago. */
  ageMs(): number {
    if (this.#deps.beatAgeMs() > BUS_LIMITS.deliveredCountsMs) return Number.POSITIVE_INFINITY;
    this.#prove();
    return ageOf(this.#provedAt);
  }

  #prove(): void {
    if (this.#answered === undefined || this.#deps.sequence() < this.#answered.sequence) return;
    this.#provedAt = this.#answered.askedAt;
    this.#answered = undefined;
  }

  async #ask(): Promise<void> {
    const { bus, stream, beatAgeMs } = this.#deps;
    const isNeeded = beatAgeMs() > BUS_LIMITS.deliveredFromMs && beatAgeMs() <= BUS_LIMITS.deliveredCountsMs;
    if (!isNeeded || this.#isAsking || !bus.isUp()) return;
    this.#isAsking = true;
    const askedAt = now();
    try {
      const { sequence } = await call(bus.nc, readDelivered, { stream }, BUS_LIMITS.deliveredAnswerMs);
      this.#prove();
      this.#answered = { askedAt, sequence };
    } catch {
      // Without an answer there is no proof, and the replica becomes stale.
    } finally {
      this.#isAsking = false;
    }
  }
}
