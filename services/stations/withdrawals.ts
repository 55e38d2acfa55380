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
import { findIntent, type StationState } from "../../machines/station/state.ts";
import { withdrawProviderPayment } from "../bus/messages/provider-payments.ts";
import { call } from "../bus/operation.ts";
import { Failures } from "../bus/outage.ts";
import { isStationUnknown } from "../bus/refusals.ts";
import { currentRequestId, forRequest, type Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { Mailboxes } from "./mailboxes.ts";
import { isFailure, type StationAnswer, SYSTEM } from "./work.ts";

export interface WithdrawalsDeps {
  readonly nc: NatsConnection;
  readonly log: Log;
  readonly mailboxes: Mailboxes;
}

interface End {
  readonly intentId: number;
  /** The HTTP request that ended it. */
  readonly requestId: string | undefined;
}

/** A station with ends to report. */
interface Report {
  readonly stationId: number;
  /** As of the newest state that was read or committed. */
  ends: readonly End[];
  pauseMs: number;
  timer: NodeJS.Timeout | undefined;
  /** True once nothing is left to report, or another host reports it. */
  isOver: boolean;
}

export class Withdrawals {
  readonly #deps: WithdrawalsDeps;
  /** One entry per station with ends to report: as bounded as the stations' deadlines. */
  readonly #reports = new Map<number, Report>();
  /** The reports that wait for their turn, in the order of arrival. */
  readonly #waiting = new Set<Report>();
  readonly #failures: Failures;
  #underWay = 0;

  constructor(deps: WithdrawalsDeps) {
    this.#deps = deps;
    const message = "the end of a QR collection is not reported yet";
    this.#failures = new Failures((...line) => deps.log.warn(...line), message);
  }

  /** Notes a state that was read or committed. */
  observe(stationId: number, state: StationState): void {
    const known = this.#reports.get(stationId);
    if (state.unreportedEnds.length === 0) {
      if (known !== undefined) this.#end(known);
      return;
    }
    const ends = state.unreportedEnds.map((intentId) => ({
      intentId,
      requestId: findIntent(state, intentId)?.provider?.requestId,
    }));
    if (known !== undefined) {
      known.ends = ends;
      return;
    }
    const pauseMs = STATION_LIMITS.withdrawPauseMs;
    const report: Report = { stationId, ends, pauseMs, timer: undefined, isOver: false };
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
    if (report.isOver) return;
    const [end] = report.ends;
    if (end === undefined) return this.#end(report);
    // The work that led here may belong to another request, or to none.
    const isReported = await forRequest(end.requestId, () => this.#attempt(report, end.intentId));
    if (report.isOver) return;
    if (isReported) {
      report.pauseMs = STATION_LIMITS.withdrawPauseMs;
      return this.#queue(report);
    }
    report.timer = setTimeout(() => this.#queue(report), report.pauseMs);
    report.pauseMs = Math.min(report.pauseMs * 2, STATION_LIMITS.withdrawLongestPauseMs);
  }

  async #attempt(report: Report, intentId: number): Promise<boolean> {
    const { stationId } = report;
    try {
      await call(this.#deps.nc, withdrawProviderPayment, { intentId }, STATION_LIMITS.providerAskMs);
    } catch (error) {
      this.#failures.failed(error, { stationId, intentId });
      return false;
    }
    const answer = await new Promise<StationAnswer>((resolve) => {
      const command = { type: "end_reported", intentId } as const;
      this.#deps.mailboxes.submit(stationId, {
        commandId: `end_reported:${intentId}`,
        actor: SYSTEM,
        command,
        requestId: currentRequestId(),
        answer: resolve,
      });
    });
    if (isFailure(answer)) return false;
    // The bus has lost the station, which would note the end; the providers service has stored it.
    if (isStationUnknown(answer.reply)) report.ends = report.ends.filter((end) => end.intentId !== intentId);
    return true;
  }
}
