/**
 * The checks before overdue QRs expire: the provider's confirmation may have been recorded in time while the station could
 * not be reached (design §2.7). While the providers service does not answer, such an intent does not expire by itself.
 *
 * Only that intent waits for the providers service (design §2.6). A check runs beside the station's mailbox:
 *
 *   tick ──► check starts, the intent stays ──► answer ──► tick: expires or settles
 *                    └── no answer: the intent stays ──► tick after a pause: another check
 *
 * A command about the intent, and a new collection, need the current outcome. They use an earlier check only if it had an
 * answer. Otherwise they wait for a new check, after everything else was gathered. If that check has no answer either, a new
 * collection lets the intent expire, and its order is marked.
 */
import type { NatsConnection } from "nats";
import { partitionOf } from "../../machines/partition.ts";
import { needsConfirmationCheck } from "../../machines/station/deadlines.ts";
import type { RecordedConfirmation } from "../../machines/station/outcome.ts";
import type { StationState } from "../../machines/station/state.ts";
import { findRecordedConfirmation } from "../bus/messages/provider-payments.ts";
import { call } from "../bus/operation.ts";
import { Failures } from "../bus/outage.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { HostCommand } from "./work.ts";

interface ConfirmationChecksDeps {
  readonly nc: NatsConnection;
  readonly log: Pick<Log, "warn">;
  /** Applies the station's deadlines. */
  readonly tick: (stationId: number) => void;
}

/** An answer that never changes: nothing that is recorded later counts as in time. */
type FinalAnswer = Exclude<RecordedConfirmation, "unknown">;
/** `early` while the clock of the providers' database is before the deadline, `unknown` without an answer. */
type Found = FinalAnswer | "early" | "unknown";

interface Check {
  readonly intentId: number;
  answer: FinalAnswer | undefined;
  /** Whether the newest check that has ended had no answer. */
  hasFailed: boolean;
  /** Checks of this intent that are under way. */
  running: number;
}

export class ConfirmationChecks {
  readonly #deps: ConfirmationChecksDeps;
  /** One entry for each station with an overdue QR. */
  readonly #checks = new Map<number, Check>();
  readonly #failures: Failures;
  #running = 0;

  constructor(deps: ConfirmationChecksDeps) {
    this.#deps = deps;
    this.#failures = new Failures((...line) => deps.log.warn(...line), "a confirmation could not be checked");
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
    const limitMs = check.hasFailed ? STATION_LIMITS.confirmationRecheckMs : STATION_LIMITS.confirmationCheckMs;
    const found = check.answer ?? (await this.#run(stationId, check, limitMs));
    if (found === "early") return "unknown";
    return isNew && found === "unknown" ? "none" : found;
  }

  /** Leaves the stations of a partition to its next owner. */
  abandon(partition: number): void {
    for (const stationId of this.#checks.keys())
      if (partitionOf(stationId) === partition) this.#checks.delete(stationId);
  }

  /** Uses the answer of an ended check. Otherwise starts a check; above the limit, a later tick starts it. */
  #atTick(stationId: number, intentId: number): RecordedConfirmation {
    const check = this.#checkOf(stationId, intentId);
    if (check.answer !== undefined) return check.answer;
    if (check.running === 0 && this.#running < STATION_LIMITS.confirmationChecksAtOnce)
      void this.#run(stationId, check, STATION_LIMITS.confirmationCheckMs);
    return "unknown";
  }

  #checkOf(stationId: number, intentId: number): Check {
    const known = this.#checks.get(stationId);
    if (known?.intentId === intentId) return known;
    const check: Check = { intentId, answer: undefined, hasFailed: false, running: 0 };
    this.#checks.set(stationId, check);
    return check;
  }

  /** Never rejects. When two checks run at once, the one with an answer counts. */
  async #run(stationId: number, check: Check, limitMs: number): Promise<Found> {
    this.#running += 1;
    check.running += 1;
    const found = await this.#ask(check.intentId, limitMs);
    this.#running -= 1;
    check.running -= 1;
    check.hasFailed = found === "unknown";
    if (found === "unknown" || found === "early") return check.answer ?? found;
    check.answer = found;
    if (this.#checks.get(stationId) === check) this.#deps.tick(stationId);
    return found;
  }

  async #ask(intentId: number, limitMs: number): Promise<Found> {
    const { nc } = this.#deps;
    try {
      const { isOver, providerReference } = await call(nc, findRecordedConfirmation, { intentId }, limitMs);
      if (!isOver) return "early";
      return providerReference === null ? "none" : { providerReference };
    } catch (error) {
      this.#failures.failed(error, { intentId });
      return "unknown";
    }
  }
}
