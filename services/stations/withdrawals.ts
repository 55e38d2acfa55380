/**
 * Reports to the providers service which QR collections have ended unpaid. Such an end stays in the station's committed state
 * until a commit notes that the providers service has stored it, so any host that reads the station goes on with the report
 * after a crash.
 *
 *   unreportedEnds committed ──► providers.withdrawProviderPayment ──► end_reported committed
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

/** A station with ends to report. */
interface Report {
  readonly stationId: number;
  /** As of the newest state that was read or committed. */
  unreportedEnds: readonly number[];
  pauseMs: number;
  timer: NodeJS.Timeout | undefined;
  /** True once nothing is left to report, or another host reports it. */
  isOver: boolean;
}

export class Withdrawals {
  readonly #deps: WithdrawalsDeps;
  /** One entry per station with ends to report: as bounded as the stations' deadlines. */
  readonly #reports = new Map<number, Report>();
  /** Those whose turn has yet to come, in the order of arrival. */
  readonly #waiting = new Set<Report>();
  #underWay = 0;

  constructor(deps: WithdrawalsDeps) {
    this.#deps = deps;
  }

  /** Notes a state that was read or committed. */
  observe(stationId: number, { unreportedEnds }: StationState): void {
    const known = this.#reports.get(stationId);
    if (unreportedEnds.length === 0) {
      if (known !== undefined) this.#end(known);
      return;
    }
    if (known !== undefined) {
      known.unreportedEnds = unreportedEnds;
      return;
    }
    const pauseMs = STATION_LIMITS.withdrawPauseMs;
    const report: Report = { stationId, unreportedEnds, pauseMs, timer: undefined, isOver: false };
    this.#reports.set(stationId, report);
    this.#queue(report);
  }

  /** Leaves the reports of a partition to its next owner. */
  abandon(partition: number): void {
    for (const report of this.#reports.values()) if (partitionOf(report.stationId) === partition) this.#end(report);
  }

  /** Reports nothing from here on. */
  stop(): void {
    for (const report of this.#reports.values()) this.#end(report);
  }

  #end(report: Report): void {
    report.isOver = true;
    clearTimeout(report.timer);
    this.#waiting.delete(report);
    this.#reports.delete(report.stationId);
  }

  #queue(report: Report): void {
    this.#waiting.add(report);
    this.#advance();
  }

  #advance(): void {
    for (const report of this.#waiting) {
      if (this.#underWay >= STATION_LIMITS.withdrawalsAtOnce) return;
      this.#waiting.delete(report);
      this.#underWay += 1;
      void this.#send(report).finally(() => {
        this.#underWay -= 1;
        this.#advance();
      });
    }
  }

  /** Reports one end, then the next one, or the same again after a pause. */
  async #send(report: Report): Promise<void> {
    const [intentId] = report.unreportedEnds;
    if (intentId === undefined || report.isOver) return;
    const isReported = await this.#attempt(report, intentId);
    if (report.isOver) return;
    if (isReported) {
      report.pauseMs = STATION_LIMITS.withdrawPauseMs;
      return this.#queue(report);
    }
    report.timer = setTimeout(() => this.#queue(report), report.pauseMs);
    report.pauseMs = Math.min(report.pauseMs * 2, STATION_LIMITS.withdrawLongestPauseMs);
  }

  async #attempt({ stationId }: Report, intentId: number): Promise<boolean> {
    try {
      await call(this.#deps.nc, withdrawProviderPayment, { intentId }, STATION_LIMITS.providerAskMs);
    } catch (error) {
      this.#deps.log.warn({ err: error, stationId, intentId }, "the end of a QR collection is not reported yet");
      return false;
    }
    const answer = await new Promise<StationAnswer>((resolve) => {
      const command = { type: "end_reported", intentId } as const;
      this.#deps.mailboxes.submit(stationId, {
        commandId: `end_reported:${intentId}`,
        actor: SYSTEM,
        command,
        answer: resolve,
      });
    });
    return !isFailure(answer);
  }
}
