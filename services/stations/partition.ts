/**
 * One owned partition: its subscriptions, the deadlines of its stations and the presence of its devices. It puts commands
 * into the stations' mailboxes. For a passive station the host stores at most one deadline.
 */
import type { Msg, NatsConnection, Subscription } from "nats";
import { nextDeadlineMs } from "../../machines/station/deadlines.ts";
import type { StationState } from "../../machines/station/state.ts";
import type { BusClock } from "../bus/bus-clock.ts";
import { publishClosed } from "../bus/closed-partitions.ts";
import { dropLate, requestIdOf } from "../bus/deadline.ts";
import { FOR_FIELD_ERRORS } from "../bus/field-errors.ts";
import { stationRequestSchema } from "../bus/messages/station-commands.ts";
import { invalidRequest } from "../bus/operation.ts";
import {
  parseHeartbeatSubject,
  parseStationId,
  partitionCommandsSubject,
  partitionStoredHeartbeatsSubject,
} from "../bus/subjects.ts";
import { turnPublisher } from "../bus/turn-publisher.ts";
import { currentRequestId, forRequest, type Log } from "../runtime/log.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { LocalCommands, Mailboxes } from "./mailboxes.ts";
import { Presence } from "./presence.ts";
import type { Wake } from "./station-log.ts";
import type { StoredHeartbeats } from "./stored-heartbeats.ts";
import { type StationAnswer, UNAVAILABLE } from "./work.ts";

/** The label of station commands in the count of late requests. */
export const STATION_COMMAND = "station.command";

interface PartitionDeps {
  readonly nc: NatsConnection;
  readonly clock: Pick<BusClock, "nowMs">;
  readonly log: Log;
  readonly mailboxes: Pick<Mailboxes, "submit">;
  readonly localCommands: LocalCommands;
  readonly deviceSilenceMs: number;
  readonly storedHeartbeats: StoredHeartbeats;
  /** Whether this host may act for the partition now. */
  readonly isCurrent: () => boolean;
}

export class Partition {
  readonly index: number;
  readonly presence: Presence;
  readonly #deps: PartitionDeps;
  readonly #deadlines = new DeadlineQueue();
  /** Undefined while the partition takes no commands. */
  #commands: Subscription | undefined;
  readonly #heartbeats: Subscription;
  /** During the scan of the log: stations whose state this host has already read or committed, so it is newer than the scan's. */
  #known: Set<number> | undefined = new Set();
  #isClosed = false;

  /** Opens the partition: from now on it takes commands and heartbeats. */
  constructor(index: number, deps: PartitionDeps) {
    this.index = index;
    this.#deps = deps;
    this.presence = new Presence(deps);
    this.setListening(true);
    this.#heartbeats = deps.nc.subscribe(partitionStoredHeartbeatsSubject(index), {
      callback: (error, message) => {
        if (error !== null) return;
        const { stationId, deviceId } = parseHeartbeatSubject(message.subject);
        this.presence.noteHeartbeat(stationId, deviceId, this.#deps.clock.nowMs());
      },
    });
  }

  /**
   * Takes commands, or none for a while, so that callers get an error at once. There is no queue group: with one, a stalled
   * host would get every second command of the host that has taken over.
   */
  setListening(isListening: boolean): void {
    if (!isListening) {
      this.#commands?.unsubscribe();
      this.#commands = undefined;
    } else if (this.#commands === undefined && !this.#isClosed) {
      this.#commands = this.#deps.nc.subscribe(partitionCommandsSubject(this.index), {
        callback: (error, message) => {
          if (error === null) forRequest(requestIdOf(message), () => this.#receive(message));
        },
      });
    }
  }

  /** Stores the deadlines and devices of a state that was read or committed. */
  observe(stationId: number, state: StationState): void {
    this.#known?.add(stationId);
    const dueMs = nextDeadlineMs(state);
    // A QR that is overdue and could not be checked is checked again after a pause.
    const earliestMs = this.#deps.clock.nowMs() + STATION_LIMITS.retryMs;
    this.#setDeadline(stationId, dueMs !== null && dueMs <= this.#deps.clock.nowMs() ? earliestMs : dueMs);
    this.presence.observe(stationId, state);
  }

  /** Takes what the scan of the log found about a station; without a `wake` the host reads the state. */
  noteWake(stationId: number, wake: Wake | undefined): void {
    if (this.#known?.has(stationId) === true) return;
    if (wake === undefined || wake.isAsking) return this.check(stationId);
    this.#setDeadline(stationId, wake.dueMs);
    this.presence.noteOnline(stationId, wake.onlineDevices);
  }

  /** Ends the scan: the partition now knows every station with a deadline or a call under way. */
  finishScan(): void {
    this.#known = undefined;
    this.presence.finishScan();
  }

  /** Whether there may be something for `tick` to do. */
  isDue(nowMs: number): boolean {
    return this.#deadlines.isDue(nowMs) || this.presence.isDue(nowMs);
  }

  tick(nowMs: number): void {
    for (const stationId of this.#deadlines.takeDue(nowMs, STATION_LIMITS.dueAtOnce)) this.check(stationId);
    this.presence.tick(nowMs);
  }

  /** Applies due deadlines. Reading the state also starts a settlement that was not completed, and sets the next deadline. */
  check(stationId: number): void {
    const commandId = `tick:${this.#deps.clock.nowMs()}`;
    this.#deps.localCommands.submit({
      stationId,
      commandId,
      command: { type: "tick" },
      isVoid: () => this.#isClosed,
      done: (answer) => {
        if (answer === undefined && !this.#isClosed) {
          this.#deadlines.set(stationId, this.#deps.clock.nowMs() + STATION_LIMITS.retryMs);
        }
      },
    });
  }

  /** Starts no further work. While it drains, it still takes commands that the server has already sent. */
  async drain(): Promise<void> {
    this.#end();
    // Without a connection there is nothing to drain.
    const drained = this.#commands?.drain().catch(() => undefined);
    publishClosed(this.#deps.nc, this.index);
    await drained;
  }

  /** Ends at once. */
  close(): void {
    this.#end();
    this.setListening(false);
  }

  #receive(message: Msg): void {
    const { nc, log, mailboxes } = this.#deps;
    const answer = (stationAnswer: StationAnswer): void => {
      if (message.reply !== undefined) turnPublisher(nc).publish(message.reply, JSON.stringify(stationAnswer));
    };
    if (dropLate({ nc, log }, message, STATION_COMMAND)) return;
    if (!this.#deps.isCurrent()) return answer(UNAVAILABLE);
    let body: unknown;
    try {
      body = message.json();
    } catch {
      body = undefined;
    }
    const parsed = stationRequestSchema.safeParse(body, FOR_FIELD_ERRORS);
    if (!parsed.success) {
      const { errors = [] } = invalidRequest(parsed.error);
      log.error({ subject: message.subject, errors }, "a station command is invalid");
      return answer({ failure: "invalid_request", errors });
    }
    mailboxes.submit(parseStationId(message.subject), { ...parsed.data, answer, requestId: currentRequestId() });
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.presence.close();
    this.#heartbeats.unsubscribe();
  }

  #setDeadline(stationId: number, dueMs: number | null): void {
    if (dueMs === null) this.#deadlines.delete(stationId);
    else this.#deadlines.set(stationId, dueMs);
  }
}
