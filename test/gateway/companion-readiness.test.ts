/** When the gateway reports a companion as ready for a collection, and how often it publishes a note of a companion's poll. */
import type { WebSocket } from "uWebSockets.js";
import { describe, expect, it } from "vitest";
import { readinessOf } from "../../gateway/api/cashier/routes.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { LiveSocket, type SocketData } from "../../gateway/live/live-socket.ts";
import { LiveSockets } from "../../gateway/live/live-sockets.ts";
import { CredentialTable } from "../../gateway/read-model/credential-replica.ts";
import { PollNotes, PollReplica } from "../../gateway/read-model/poll-notes.ts";
import type { Replicas } from "../../gateway/read-model/replicas.ts";
import type { PaymentIntent } from "../../machines/payment-intent.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import type { StationState } from "../../machines/station/state.ts";
import { connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { LIVENESS } from "../../services/bus/streams.ts";
import { heartbeatSubject, pollSubject } from "../../services/bus/subjects.ts";
import { aCounter, START_MS } from "../machines/scenario.ts";
import { startNats } from "../support/servers.ts";
import { SILENT } from "./gateway-world.ts";

const NOW_MS = 1_000_000;
const SILENCE_MS = LIMITS.pollSilenceMs;
type State = Pick<StationState, "intent" | "ended">;
const idle: State = { intent: null, ended: [] };
const device = (state: "online" | "offline") => ({ deviceId: 5, liveness: { state, lastSeenAtMs: 1, sinceMs: 1 } });
const intent = (facts: Partial<PaymentIntent>) =>
  ({ deviceId: 5, presentedAtMs: 1, endedAtMs: null, ...facts }) as PaymentIntent;
const readinessAt = (state: State, polledAtMs: number | null, nowMs = NOW_MS) =>
  readinessOf(state, device("online"), polledAtMs, nowMs).readiness;

describe("a companion's readiness", () => {
  it("after a poll: ready for 35 seconds, with the end of that time", () => {
    const { readiness, validUntilMs } = readinessOf(idle, device("online"), NOW_MS, NOW_MS);
    expect([readiness, validUntilMs]).toEqual(["ready", NOW_MS + SILENCE_MS]);
    expect(readinessAt(idle, NOW_MS, NOW_MS + SILENCE_MS - 1)).toBe("ready");
    expect(readinessAt(idle, NOW_MS, NOW_MS + SILENCE_MS)).toBe("not_polling");
  });

  it("heartbeats without a poll: not polling; no heartbeats: offline", () => {
    expect(readinessAt(idle, null)).toBe("not_polling");
    expect(readinessOf(idle, device("offline"), NOW_MS, NOW_MS).readiness).toBe("offline");
  });

  it("a collection that the companion has fetched: ready without polls, until 35 seconds after its end", () => {
    const polledAtMs = NOW_MS - 10 * SILENCE_MS;
    expect(readinessAt({ intent: intent({ status: "processing" }), ended: [] }, polledAtMs)).toBe("ready");
    expect(readinessAt({ intent: intent({ status: "created" }), ended: [] }, polledAtMs)).toBe("not_polling");
    expect(readinessAt({ intent: intent({ status: "processing", deviceId: 6 }), ended: [] }, polledAtMs)).toBe(
      "not_polling",
    );
    const ended = { intent: null, ended: [intent({ status: "succeeded", endedAtMs: NOW_MS })] };
    expect(readinessAt(ended, polledAtMs, NOW_MS + SILENCE_MS - 1)).toBe("ready");
    expect(readinessAt(ended, polledAtMs, NOW_MS + SILENCE_MS)).toBe("not_polling");
    const unfetched = { intent: null, ended: [intent({ status: "expired", endedAtMs: NOW_MS, presentedAtMs: null })] };
    expect(readinessAt(unfetched, polledAtMs)).toBe("not_polling");
  });

  it("after the clock was set back: polls and collections from before do not count", () => {
    const beforeMs = NOW_MS + 7_200_000;
    const ended = { intent: null, ended: [intent({ status: "succeeded", endedAtMs: beforeMs })] };
    expect(readinessAt(ended, beforeMs)).toBe("not_polling");
    expect(readinessAt(ended, NOW_MS - 1)).toBe("ready");
    expect(readinessAt(idle, NOW_MS + 1_000), "the clocks of two processes differ a little").toBe("ready");
  });

  it("a note of a process whose clock is ahead: polled when the note arrived", () => {
    const replica = new PollReplica({ nowMs: () => NOW_MS });
    replica.apply(pollSubject(3, 5), Buffer.from(String(NOW_MS + 7_200_000)), NOW_MS);
    expect(replica.polledAtMs(5)).toBe(NOW_MS);
    replica.apply(pollSubject(3, 5), new Uint8Array(), NOW_MS - 5_000);
    expect(replica.polledAtMs(5), "of an empty note: when it was stored").toBe(NOW_MS - 5_000);
  });

  it("the clock is set back while a live socket is open: the socket gets the readiness by the new time", async () => {
    let nowMs = START_MS;
    const nothing = (): void => undefined;
    const replicas = {
      stations: { onChange: nothing, state: () => aCounter().station, cell: () => "a commit" },
      polls: { onChange: nothing, polledAtMs: () => START_MS },
      switches: { onChange: nothing, current: () => NO_KILL_SWITCHES },
      sessions: { findDigest: () => "a session" },
      nowMs: () => nowMs,
      areSwitchesFresh: () => true,
      areSessionsFresh: () => true,
      isStationFresh: () => true,
    } as unknown as Replicas;
    const sockets = new LiveSockets({ replicas, missing: { whyNone: async () => "not_found" }, log: SILENT });
    const socket = new LiveSocket({ stationId: 3, userId: 1, sessionId: 2, sessionDigest: "", requestId: "test" });
    const sent: string[] = [];
    socket.open({
      cork: (write: () => void) => write(),
      send: (message: string) => {
        const { companions = [] } = JSON.parse(message) as { companions?: readonly { readonly readiness: string }[] };
        sent.push(...companions.map(({ readiness }) => readiness));
      },
      ping: (payload: string) => socket.ponged(payload),
      end: nothing,
    } as unknown as WebSocket<SocketData>);
    sockets.add(socket);
    await expect.poll(() => sent).toEqual(["ready"]);
    nowMs -= 7_200_000;
    await expect.poll(() => sent).toEqual(["ready", "not_polling"]);
    sockets.stop();
  });
});

describe("notes of polls", () => {
  it("one device: all gateways together publish one note in ten seconds at most, and no note replaces a heartbeat", async () => {
    const nats = await startNats();
    const bus = await connectBus({ url: nats.url, name: "test", log: SILENT });
    try {
      await ensureStreams(bus, { replicas: 1, logs: 1 });
      await bus.js.publish(heartbeatSubject(3, 31), "{}");
      const tableOf = (): CredentialTable => {
        const table = new CredentialTable();
        table.set("x".repeat(32), 31, 3, 0xff);
        return table;
      };
      const replica = new PollReplica(bus.clock);
      const notes = new PollNotes(bus.nc, replica);
      const [here, there] = [tableOf(), tableOf()];
      const slot = here.find("x".repeat(32));
      const subject = pollSubject(3, 31);
      const newest = () => bus.jsm.streams.getMessage(LIVENESS.name, { last_by_subj: subject });
      /** The sequence number of the newest note. The marker is published after the note, so the note is stored by then. */
      const storedNote = async (): Promise<number> => {
        await new Promise((resolve) => setImmediate(resolve));
        await bus.js.publish(heartbeatSubject(3, 32), "{}");
        const message = await newest();
        return message?.seq ?? 0;
      };
      const noteAt = async (table: CredentialTable, nowMs: number): Promise<number> => {
        notes.note(table, slot, nowMs);
        const seq = await storedNote();
        replica.apply(subject, Buffer.from(String(nowMs)), nowMs);
        return seq;
      };
      const startMs = 1_700_000_000_000;
      // A marker follows each note, so the next note has a number that is higher by two or more.
      expect(await noteAt(here, startMs)).toBe(2);
      for (const laterMs of [1, 2_000, 9_000]) {
        notes.note(here, slot, startMs + laterMs);
        // The other gateway has published no note, but it has received this one.
        notes.note(there, slot, startMs + laterMs);
      }
      expect(await storedNote()).toBe(2);
      expect(await noteAt(here, startMs + 10_000)).toBe(5);
      expect(await noteAt(there, startMs + 20_001)).toBe(7);
      const heartbeat = await bus.jsm.streams.getMessage(LIVENESS.name, { last_by_subj: heartbeatSubject(3, 31) });
      expect(heartbeat?.seq).toBe(1);
    } finally {
      await bus.close();
      await nats.stop();
    }
  });
});
