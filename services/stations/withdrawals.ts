/**
 * Telling the providers service which QR collections have ended unpaid. What is still to be told stands in a station's
 * committed state until a commit says that the providers service has taken note, so any host that looks at the station
 * goes on with it, whatever has crashed.
 *
 *   untoldEnds committed ──► providers.withdrawProviderPayment ──► end_told committed
 *                                └── no answer: pause, again
 */
import type { NatsConnection } from "nats";
import { partitionOf } from "../../machines/partition.ts";
import type { StationState } from "../../machines/station/state.ts";
import { withdrawProviderPayment } from "../bus/messages/provider-payments.ts";
import { call } from "../bus/operation.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { Mailboxes } from "./mailboxes.ts";
import { isFailure, type StationAnswer, SYSTEM } from "./work.ts";

export interface WithdrawalsDeps {
  readonly nc: NatsConnection;
  readonly log: Log;
  readonly mailboxes: Mailboxes;
}

/** A station of which something is to be told. */
interface Telling {
  readonly stationId: number;
  /** As of the newest state that was seen. */
  untoldEnds: readonly number[];
  pauseMs: number;
  timer: NodeJS.Timeout | undefined;
  /** True once nothing is left, or it is another host's. */
  isOver: boolean;
}

export class Withdrawals {
  readonly #deps: WithdrawalsDeps;
  /** One entry per station with something to tell: as bounded as the deadlines of the stations. */
  readonly #tellings = new Map<number, Telling>();
  /** Those whose turn has yet to come, in the order of arrival. */
  readonly #waiting = new Set<Telling>();
  #underWay = 0;

  constructor(deps: WithdrawalsDeps) {
    this.#deps = deps;
  }

  /** Takes note of a state that was read or committed. */
  observe(stationId: number, { untoldEnds }: StationState): void {
    const known = this.#tellings.get(stationId);
    if (untoldEnds.length === 0) {
      if (known !== undefined) this.#end(known);
      return;
    }
    if (known !== undefined) {
      known.untoldEnds = untoldEnds;
      return;
    }
    const pauseMs = STATION_LIMITS.withdrawPauseMs;
    const telling: Telling = { stationId, untoldEnds, pauseMs, timer: undefined, isOver: false };
    this.#tellings.set(stationId, telling);
    this.#queue(telling);
  }

  /** Leaves what is to be told of a partition to its next owner. */
  abandon(partition: number): void {
    for (const telling of this.#tellings.values()) if (partitionOf(telling.stationId) === partition) this.#end(telling);
  }

  /** Nothing is told from here on. */
  stop(): void {
    for (const telling of this.#tellings.values()) this.#end(telling);
  }

  #end(telling: Telling): void {
    telling.isOver = true;
    clearTimeout(telling.timer);
    this.#waiting.delete(telling);
    this.#tellings.delete(telling.stationId);
  }

  #queue(telling: Telling): void {
    this.#waiting.add(telling);
    this.#advance();
  }

  #advance(): void {
    for (const telling of this.#waiting) {
      if (this.#underWay >= STATION_LIMITS.withdrawalsAtOnce) return;
      this.#waiting.delete(telling);
      this.#underWay += 1;
      void this.#tell(telling).finally(() => {
        this.#underWay -= 1;
        this.#advance();
      });
    }
  }

  /** Tells one, and comes back for the next, or for the same after a pause. */
  async #tell(telling: Telling): Promise<void> {
    const [intentId] = telling.untoldEnds;
    if (intentId === undefined || telling.isOver) return;
    const isTold = await this.#attempt(telling, intentId);
    if (telling.isOver) return;
    if (isTold) {
      telling.pauseMs = STATION_LIMITS.withdrawPauseMs;
      return this.#queue(telling);
    }
    telling.timer = setTimeout(() => this.#queue(telling), telling.pauseMs);
    telling.pauseMs = Math.min(telling.pauseMs * 2, STATION_LIMITS.withdrawLongestPauseMs);
  }

  async #attempt({ stationId }: Telling, intentId: number): Promise<boolean> {
    try {
      await call(this.#deps.nc, withdrawProviderPayment, { intentId }, STATION_LIMITS.providerAskMs);
    } catch (error) {
      this.#deps.log.warn({ err: error, stationId, intentId }, "the end of a QR collection has yet to be told");
      return false;
    }
    const answer = await new Promise<StationAnswer>((resolve) => {
      const command = { type: "end_told", intentId } as const;
      this.#deps.mailboxes.submit(stationId, {
        commandId: `told:${intentId}`,
        actor: SYSTEM,
        command,
        answer: resolve,
      });
    });
    return !isFailure(answer);
  }
}
