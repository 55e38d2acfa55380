/**
 * Telling the providers service that a QR payment is not wanted any more, until it has taken note or it is no use: at the
 * intent's deadline it finds out by itself, so nothing here has to survive a crash.
 */
import type { NatsConnection } from "nats";
import { withdrawProviderPayment } from "../bus/messages/providers.ts";
import { call } from "../bus/operation.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";

export interface WithdrawalsDeps {
  readonly nc: NatsConnection;
  readonly log: Log;
}

export class Withdrawals {
  readonly #deps: WithdrawalsDeps;
  readonly #underWay = new Set<number>();
  readonly #stopped = new AbortController();

  constructor(deps: WithdrawalsDeps) {
    this.#deps = deps;
  }

  /** Does nothing when the intent's withdrawal is under way already. */
  start(intentId: number): void {
    if (this.#stopped.signal.aborted || this.#underWay.has(intentId)) return;
    if (this.#underWay.size >= STATION_LIMITS.withdrawalsAtOnce) {
      this.#deps.log.warn({ intentId }, "a withdrawal is left to the deadline");
      return;
    }
    this.#underWay.add(intentId);
    void this.#insist(intentId).finally(() => this.#underWay.delete(intentId));
  }

  /** Nothing is told from here on. */
  stop(): void {
    this.#stopped.abort();
  }

  async #insist(intentId: number): Promise<void> {
    const untilMs = performance.now() + STATION_LIMITS.withdrawPatienceMs;
    let pauseMs: number = STATION_LIMITS.withdrawPauseMs;
    while (!this.#stopped.signal.aborted) {
      try {
        await call(this.#deps.nc, withdrawProviderPayment, { intentId }, STATION_LIMITS.providerAskMs);
        return;
      } catch (error) {
        if (performance.now() + pauseMs >= untilMs) {
          this.#deps.log.warn({ err: error, intentId }, "a withdrawal is left to the deadline");
          return;
        }
      }
      await new Promise<void>((resolve) => setTimeout(resolve, pauseMs).unref());
      pauseMs = Math.min(pauseMs * 2, STATION_LIMITS.withdrawLongestPauseMs);
    }
  }
}
