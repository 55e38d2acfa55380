/** Device liveness: every state, every event, in order and out of order. */
import { describe, expect, it } from "vitest";
import {
  type LivenessEvent,
  type LivenessRecord,
  type LivenessState,
  livenessMachine,
} from "../../machines/liveness.ts";
import { take } from "../../machines/pure-transition.ts";
import { holdsItsTable, type TransitionTable } from "./transition-table.ts";

type LivenessEventType = LivenessEvent["type"];
type Table = TransitionTable<LivenessState, LivenessEventType>;

/** The time of the last heartbeat in both states. */
const LAST_HEARTBEAT_AT_MS = 50_000;
const CONTEXT: LivenessRecord = { lastSeenAtMs: LAST_HEARTBEAT_AT_MS, sinceMs: LAST_HEARTBEAT_AT_MS };

const CASES: Record<"newer" | "the same" | "older", { readonly atMs: number; readonly table: Table }> = {
  newer: {
    atMs: LAST_HEARTBEAT_AT_MS + 1,
    table: { offline: { SEEN: "online", SILENT: "not taken" }, online: { SEEN: "not taken", SILENT: "offline" } },
  },
  "the same": {
    atMs: LAST_HEARTBEAT_AT_MS,
    table: { offline: { SEEN: "not taken", SILENT: "not taken" }, online: { SEEN: "not taken", SILENT: "offline" } },
  },
  older: {
    atMs: LAST_HEARTBEAT_AT_MS - 1,
    table: {
      offline: { SEEN: "not taken", SILENT: "not taken" },
      online: { SEEN: "not taken", SILENT: "not taken" },
    },
  },
};

for (const [age, { atMs, table }] of Object.entries(CASES)) {
  const events: Record<LivenessEventType, LivenessEvent> = {
    SEEN: { type: "SEEN", seenAtMs: atMs },
    SILENT: { type: "SILENT", lastSeenAtMs: atMs, atMs: atMs + 25_000 },
  };
  holdsItsTable({
    name: `liveness, ${age} than what is committed`,
    machine: livenessMachine,
    contextIn: () => CONTEXT,
    event: (type: LivenessEventType) => events[type],
    table,
  });
}

describe("a device without any heartbeat", () => {
  const never = { value: "offline", context: { lastSeenAtMs: null, sinceMs: null } };

  it("comes online with its first heartbeat", () => {
    expect(take(livenessMachine, never, { type: "SEEN", seenAtMs: 7 })).toEqual({
      value: "online",
      context: { lastSeenAtMs: 7, sinceMs: 7 },
    });
  });

  it("stores the last heartbeat and the beginning of the silence when it goes offline", () => {
    const online = take(livenessMachine, never, { type: "SEEN", seenAtMs: 7 }) ?? never;
    expect(take(livenessMachine, online, { type: "SILENT", lastSeenAtMs: 20, atMs: 45 })).toEqual({
      value: "offline",
      context: { lastSeenAtMs: 20, sinceMs: 45 },
    });
  });
});
