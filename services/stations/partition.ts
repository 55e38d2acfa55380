/**
 * One owned partition: its subscriptions, the deadlines of its stations and the presence of its devices. What a passive
 * station costs this host is at most an entry among the deadlines.
 */
import type { Msg, NatsConnection, Subscription } from "nats";
import { nextDeadlineMs } from "../../machines/station/deadlines.ts";
import type { StationState } from "../../machines/station/state.ts";
import type { BusClock } from "../bus/bus-clock.ts";
import { parseHeartbeatSubject, partitionCommandsSubject, partitionStoredHeartbeatsSubject } from "../bus/subjects.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { OwnWork } from "./own-work.ts";
import { Presence } from "./presence.ts";
import type { Wake } from "./wake.ts";

export interface PartitionDeps {
  readonly nc: NatsConnection;
  readonly clock: Pick<BusClock, "nowMs">;
  readonly ownWork: OwnWork;
  readonly deviceSilenceMs: number;
  readonly onRequest: (message: Msg) => void;
}

export class Partition {
  readonly index: number;
  readonly presence: Presence;
  readonly #deps: PartitionDeps;
  readonly #deadlines = new DeadlineQueue();
  /** Undefined while no commands are taken. */
  #commands: Subscription | undefined;
  readonly #heartbeats: Subscription;
  /** While the log is scanned: stations whose newest state is known better than the scan can tell. */
  #known: Set<number> | undefined = new Set();
  #isClosed = false;

  /** Opens the partition: commands and heartbeats are taken from here on. */
  constructor(index: number, deps: PartitionDeps) {
    this.index = index;
    this.#deps = deps;
    this.presence = new Presence(deps);
    this.setListening(true);
    this.#heartbeats = deps.nc.subscribe(partitionStoredHeartbeatsSubject(index), {
      callback: (error, message) => {
        if (error !== null) return;
        const { stationId, deviceId } = parseHeartbeatSubject(message.subject);
        this.presence.heard(stationId, deviceId, this.#deps.clock.nowMs());
      },
    });
  }

  /**
   * Takes commands, or takes none for a while, so that callers learn at once that this host does not answer. There is no queue
   * group: a host that is stalled would be given every second command of the host that has taken over.
   */
  setListening(isListening: boolean): void {
    if (!isListening) {
      this.#commands?.unsubscribe();
      this.#commands = undefined;
    } else if (this.#commands === undefined && !this.#isClosed) {
      this.#commands = this.#deps.nc.subscribe(partitionCommandsSubject(this.index), {
        callback: (error, message) => {
          if (error === null) this.#deps.onRequest(message);
        },
      });
    }
  }

  /** Takes over what a state that was read or committed says about deadlines and devices. */
  observe(stationId: number, state: StationState): void {
    this.#known?.add(stationId);
    const dueMs = nextDeadlineMs(state);
    // An overdue QR that could not be checked is tried again after a pause.
    const earliestMs = this.#deps.clock.nowMs() + STATION_LIMITS.retryMs;
    this.#setDeadline(stationId, dueMs !== null && dueMs <= this.#deps.clock.nowMs() ? earliestMs : dueMs);
    this.presence.observe(stationId, state);
  }

  /** Takes over what the scan of the log says about a station; `undefined` means that its state has to be looked at. */
  noteWake(stationId: number, wake: Wake | undefined): void {
    if (this.#known?.has(stationId) === true) return;
    if (wake === undefined || wake.isAsking) return this.look(stationId);
    this.#setDeadline(stationId, wake.dueMs);
    this.presence.noteOnline(stationId, wake.onlineDevices);
  }

  /** The scan is over: every station with something to come is known. */
  finishScan(): void {
    this.#known = undefined;
    this.presence.finishScan();
  }

  tick(nowMs: number): void {
    for (const stationId of this.#deadlines.takeDue(nowMs, STATION_LIMITS.dueAtOnce)) this.look(stationId);
    this.presence.tick(nowMs);
  }

  /** Applies due deadlines; reading the state also finds a settlement to see through and sets the next deadline. */
  look(stationId: number): void {
    const commandId = `tick:${this.#deps.clock.nowMs()}`;
    this.#deps.ownWork.submit({
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

  /** Acts for nobody from here on. Commands that the server has sent already still come and are taken while it drains. */
  async drain(): Promise<void> {
    this.#end();
    // Without a connection there is nothing to drain.
    await this.#commands?.drain().catch(() => undefined);
  }

  /** Ends at once. */
  close(): void {
    this.#end();
    this.setListening(false);
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
