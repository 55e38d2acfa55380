/**
 * The newest stored heartbeat of a device. LIVENESS republishes each heartbeat to the hosts as a plain message, which no
 * server passes on a second time. So a host whose server has lost its link to the leader of LIVENESS misses heartbeats, although
 * it receives commands. Before a device counts as silent, the host asks the leader.
 */
import type { Bus } from "../bus/connection.ts";
import { heartbeatAtMs } from "../bus/messages/heartbeat.ts";
import { LIVENESS } from "../bus/streams.ts";
import { heartbeatSubject } from "../bus/subjects.ts";
import { within } from "../runtime/repeat.ts";
import { STATION_LIMITS } from "./limits.ts";

export class StoredHeartbeats {
  readonly #bus: Pick<Bus, "jsm">;
  #reads = 0;

  constructor(bus: Pick<Bus, "jsm">) {
    this.#bus = bus;
  }

  /**
   * When its gateway received it, by the time of the bus; 0 when none is stored. Undefined without an answer, or while
   * `heartbeatReadsAtOnce` others are under way: the caller asks again later. Never rejects.
   */
  async newestAtMs(stationId: number, deviceId: number): Promise<number | undefined> {
    if (this.#reads >= STATION_LIMITS.heartbeatReadsAtOnce) return undefined;
    this.#reads += 1;
    try {
      const query = { last_by_subj: heartbeatSubject(stationId, deviceId) };
      const stored = await within(this.#bus.jsm.streams.getMessage(LIVENESS.name, query), STATION_LIMITS.loadMs);
      if (stored === undefined) return undefined;
      return stored === null ? 0 : heartbeatAtMs({ headers: stored.header, storedAtMs: stored.time.getTime() });
    } catch {
      return undefined;
    } finally {
      this.#reads -= 1;
    }
  }
}
