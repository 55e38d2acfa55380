/** When companions poll for their assignment: each gateway publishes notes of it, and all gateways follow them. */
import type { NatsConnection } from "nats";
import { LIVENESS } from "../../services/bus/streams.ts";
import { POLLS_ALL, parseHeartbeatSubject, pollSubject } from "../../services/bus/subjects.ts";
import { turnPublisher } from "../../services/bus/turn-publisher.ts";
import { LIMITS } from "../limits.ts";
import type { CredentialTable } from "./credential-replica.ts";
import type { FeedTarget } from "./replica-feed.ts";

/**
 * Publishes notes for all gateways, at most one per device in ten seconds. A poll must not wait for the bus, so no
 * acknowledgement is awaited: the next note replaces one that is lost.
 */
export class PollNotes {
  readonly #nc: NatsConnection;
  readonly #noted: Pick<PollReplica, "polledAtMs">;

  constructor(nc: NatsConnection, noted: Pick<PollReplica, "polledAtMs">) {
    this.#nc = nc;
    this.#noted = noted;
  }

  /** Nearly always returns after one read of the credential's slot, which is in the processor's cache by then. */
  note(table: CredentialTable, slot: number, nowMs: number): void {
    const sinceMs = nowMs - table.polledAtSeconds(slot) * 1_000;
    // A clock that was set back must not keep notes away until it has caught up.
    if (sinceMs >= 0 && sinceMs < LIMITS.pollNoteMs) return;
    table.setPolledAtSeconds(slot, Math.floor(nowMs / 1_000));
    const deviceId = table.deviceId(slot);
    // Another gateway may have noted it already.
    const notedForMs = nowMs - (this.#noted.polledAtMs(deviceId) ?? 0);
    if (notedForMs >= 0 && notedForMs < LIMITS.pollNoteMs) return;
    turnPublisher(this.#nc).publish(pollSubject(table.stationId(slot), deviceId), "");
  }
}

/**
 * When each companion last asked for its assignment, followed from the notes that all gateways leave in LIVENESS; by the
 * bus server's clock, so that every gateway answers the same about a device, whichever it polls.
 */
export class PollReplica implements FeedTarget {
  readonly stream = LIVENESS.name;
  readonly filter = POLLS_ALL;
  /** One entry per companion that ever polled, as there is one message of it in the stream. */
  readonly #polledAtMs = new Map<number, number>();
  readonly #listeners = new Set<(stationId: number) => void>();

  /** Null when it never has. */
  polledAtMs(deviceId: number): number | null {
    return this.#polledAtMs.get(deviceId) ?? null;
  }

  /** Called with the station of each device that is noted. */
  onChange(listener: (stationId: number) => void): void {
    this.#listeners.add(listener);
  }

  reset(): void {
    this.#polledAtMs.clear();
  }

  apply(subject: string, _data: Uint8Array, storedAtMs: number): void {
    const { stationId, deviceId } = parseHeartbeatSubject(subject);
    this.#polledAtMs.set(deviceId, Math.floor(storedAtMs));
    for (const listener of this.#listeners) listener(stationId);
  }
}
