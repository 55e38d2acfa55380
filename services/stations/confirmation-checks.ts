/**
 * The checks before overdue QRs expire: the provider's confirmation may have been recorded in time while the station could
 * not be reached (design §9.7). While the providers service does not answer, such an intent does not expire by itself.
 *
 * Nothing but that intent waits for the providers service (design §9.5). A check runs beside the station's mailbox:
 *
 *   tick ──► check starts, the intent stays ──► answer ──► tick: expires or settles
 *                    └── no answer: the intent stays ──► tick after a pause: another check
 *
 * A command about the intent, and a new collection, need the outcome. They wait for the first check, and for none once a
 * check had no answer: then a new collection lets the intent expire, and its order is marked.
 */
import type { NatsConnection } from "nats";
import { partitionOf } from "../../machines/partition.ts";
import { needsConfirmationCheck } from "../../machines/station/deadlines.ts";
import type { RecordedConfirmation } from "../../machines/station/outcome.ts";
import type { StationState } from "../../machines/station/state.ts";
import { findRecordedConfirmation } from "../bus/messages/providers.ts";
import { call } from "../bus/operation.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { HostCommand } from "./work.ts";

export interface ConfirmationChecksDeps {
  readonly nc: NatsConnection;
  readonly log: Pick<Log, "warn">;
  /** Applies the station's deadlines. */
  readonly tick: (stationId: number) => void;
}

interface Check {
  readonly intentId: number;
  /** What the last check found: `unknown` when it had no answer, undefined while the database's clock is before the deadline. */
  found: RecordedConfirmation | undefined;
  running: Promise<RecordedConfirmation> | undefined;
}

export class ConfirmationChecks {
  readonly #deps: ConfirmationChecksDeps;
  /** One entry for each station with an overdue QR. */
  readonly #checks = new Map<number, Check>();
  #running = 0;

  constructor(deps: ConfirmationChecksDeps) {
    this.#deps = deps;
  }

  /** What a step of `command` may know of the confirmation. Never rejects. */
  async find(state: StationState, command: HostCommand, atMs: number): Promise<RecordedConfirmation> {
    const { stationId, intent } = state;
    if (intent === null || !needsConfirmationCheck(state, atMs)) {
      this.#checks.delete(stationId);
      return "none";
    }
    const { intentId } = intent;
    if (command.type === "tick") return this.#atTick(stationId, intentId);
    const isNew = command.type === "intent_create";
    if (!isNew && !("intentId" in command && command.intentId === intentId)) return "unknown";
    const check = this.#checkOf(stationId, intentId);
    const found = check.found ?? (await (check.running ?? this.#start(stationId, check)));
    return isNew && found === "unknown" ? "none" : found;
  }

  /** Leaves the stations of a partition to its next owner. */
  abandon(partition: number): void {
    for (const stationId of this.#checks.keys())
      if (partitionOf(stationId) === partition) this.#checks.delete(stationId);
  }

  /** An answer is final, so it is used at the next tick. Above the limit the next tick starts the check. */
  #atTick(stationId: number, intentId: number): RecordedConfirmation {
    const check = this.#checkOf(stationId, intentId);
    if (check.found !== undefined && check.found !== "unknown") return check.found;
    if (check.running === undefined && this.#running < STATION_LIMITS.confirmationChecksAtOnce)
      void this.#start(stationId, check);
    return "unknown";
  }

  #checkOf(stationId: number, intentId: number): Check {
    const known = this.#checks.get(stationId);
    if (known?.intentId === intentId) return known;
    const check: Check = { intentId, found: undefined, running: undefined };
    this.#checks.set(stationId, check);
    return check;
  }

  #start(stationId: number, check: Check): Promise<RecordedConfirmation> {
    this.#running += 1;
    check.running = this.#ask(check.intentId).then((found) => {
      this.#running -= 1;
      check.running = undefined;
      check.found = found;
      const isFinal = found !== undefined && found !== "unknown";
      if (isFinal && this.#checks.get(stationId) === check) this.#deps.tick(stationId);
      return found ?? "unknown";
    });
    return check.running;
  }

  async #ask(intentId: number): Promise<RecordedConfirmation | undefined> {
    const { nc, log } = this.#deps;
    try {
      const found = await call(nc, findRecordedConfirmation, { intentId }, STATION_LIMITS.confirmationCheckMs);
      if (!found.isOver) return undefined;
      return found.providerReference === null ? "none" : { providerReference: found.providerReference };
    } catch (error) {
      log.warn({ err: error, intentId }, "a confirmation could not be checked");
      return "unknown";
    }
  }
}
