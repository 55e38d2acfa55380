/** When companions poll for their assignment: each gateway publishes a note of a poll, and all gateways read it. */
import type { NatsConnection } from "nats";
import type { BusClock } from "../../services/bus/bus-clock.ts";
import { LIVENESS } from "../../services/bus/streams.ts";
import { POLLS_ALL, parseHeartbeatSubject, pollSubject } from "../../services/bus/subjects.ts";
import { turnPublisher } from "../../services/bus/turn-publisher.ts";
import { LIMITS } from "../limits.ts";
import type { CredentialTable } from "./credential-replica.ts";
import type { FeedTarget } from "./replica-feed.ts";

const TEXT = new TextDecoder();

/**
 * Publishes notes for all gateways, at most one per device in ten seconds. A poll must not wait for the bus, so the
 * gateway awaits no acknowledgement: the next note replaces a lost one.
 */
export class PollNotes {
  readonly #nc: NatsConnection;
  readonly #noted: Pick<PollReplica, "polledAtMs">;

  constructor(nc: NatsConnection, noted: Pick<PollReplica, "polledAtMs">) {
    this.#nc = nc;
    this.#noted = noted;
  }

  /** Usually returns after one read of the credential's slot, which the gate has just loaded into the CPU cache. */
  note(table: CredentialTable, slot: number, nowMs: number): void {
    const sinceMs = nowMs - table.polledAtSeconds(slot) * 1_000;
    // Negative after the clock was set back: then the gateway publishes, and does not wait until the clock catches up.
    if (sinceMs >= 0 && sinceMs < LIMITS.pollNoteMs) return;
    table.setPolledAtSeconds(slot, Math.floor(nowMs / 1_000));
    const deviceId = table.deviceId(slot);
    // Another gateway may have published a note of this device already.
    const notedForMs = nowMs - (this.#noted.polledAtMs(deviceId) ?? 0);
    if (notedForMs >= 0 && notedForMs < LIMITS.pollNoteMs) return;
    turnPublisher(this.#nc).publish(pollSubject(table.stationId(slot), deviceId), String(nowMs));
  }
}

/**
 * When each companion last polled for its assignment, from the notes of all gateways in LIVENESS. A note is the time of the bus
 * as text, so all gateways answer the same about a device, whichever of them the device polls.
 */
export class PollReplica implements FeedTarget {
  readonly stream = LIVENESS.name;
  readonly filter = POLLS_ALL;
  readonly #clock: Pick<BusClock, "nowMs">;
  /** One entry per companion that has polled: the stream keeps one message of each. */
  readonly #polledAtMs = new Map<number, number>();
  readonly #listeners = new Set<(stationId: number) => void>();

  constructor(clock: Pick<BusClock, "nowMs">) {
    this.#clock = clock;
  }

  /** Null when the device has never polled. A time ahead of the clock is from before the clock was set back. */
  polledAtMs(deviceId: number): number | null {
    return this.#polledAtMs.get(deviceId) ?? null;
  }

  /** Calls the listener with the station of each device whose note arrives. */
  onChange(listener: (stationId: number) => void): void {
    this.#listeners.add(listener);
  }

  reset(): void {
    this.#polledAtMs.clear();
  }

  apply(subject: string, data: Uint8Array, storedAtMs: number): void {
    const { stationId, deviceId } = parseHeartbeatSubject(subject);
    // The clocks of two processes differ by milliseconds, and a note from before the clock was set back is ahead of it.
    // The time of storing counts for an empty note.
    const polledAtMs = Number(TEXT.decode(data)) || Math.floor(storedAtMs);
    this.#polledAtMs.set(deviceId, Math.min(polledAtMs, this.#clock.nowMs()));
    for (const listener of this.#listeners) listener(stationId);
  }
}
