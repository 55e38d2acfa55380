/**
 * When each companion last asked for its assignment, followed from the notes that all gateways leave in LIVENESS; by the
 * bus server's clock, so that every gateway tells the same of a device, whichever it polls.
 */
import { LIVENESS } from "../../../services/bus/streams.ts";
import { POLLS_ALL, parseHeartbeatSubject } from "../../../services/bus/subjects.ts";
import type { FeedTarget } from "./replica-feed.ts";

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
