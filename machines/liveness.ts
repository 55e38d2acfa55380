/**
 * A device's liveness as its station commits it. The log has only these two changes, and no heartbeats.
 *
 *              SEEN
 *   ┌─────────┐ ─────► ┌────────┐
 *   │ offline │        │ online │
 *   └─────────┘ ◄───── └────────┘
 *              SILENT
 *
 * A device starts offline and is live only after its first heartbeat (contract, "Device liveness"). SEEN must be newer than the
 * committed heartbeat, or than the reset after which none has come, and SILENT must not be older, so that a message that
 * arrives late changes nothing.
 */
import { assign, setup } from "xstate";

export interface LivenessRecord {
  /** When the last heartbeat before this commit arrived; null when never. The LIVENESS stream has newer heartbeats. */
  readonly lastSeenAtMs: number | null;
  /** Since when the device is in this state, or since its reset; null when it was neither online nor reset. */
  readonly sinceMs: number | null;
}

export type LivenessEvent =
  | { readonly type: "SEEN"; readonly seenAtMs: number }
  | { readonly type: "SILENT"; readonly lastSeenAtMs: number; readonly atMs: number };

export const livenessMachine = setup({
  types: { context: {} as LivenessRecord, events: {} as LivenessEvent },
  guards: {
    // A heartbeat from before the silence or the reset may arrive after it, and must not set the device online.
    isNewer: ({ context: { lastSeenAtMs, sinceMs }, event }) =>
      event.type === "SEEN" && event.seenAtMs > (lastSeenAtMs ?? sinceMs ?? Number.NEGATIVE_INFINITY),
    // A host that was stalled during a take-over has older data than this commit: the silence that it reports is not the device's.
    isSilence: ({ context, event }) =>
      event.type === "SILENT" && (context.lastSeenAtMs === null || event.lastSeenAtMs >= context.lastSeenAtMs),
  },
  actions: {
    recordSeen: assign(({ context, event }) =>
      event.type === "SEEN" ? { lastSeenAtMs: event.seenAtMs, sinceMs: event.seenAtMs } : context,
    ),
    recordSilent: assign(({ context, event }) =>
      event.type === "SILENT" ? { lastSeenAtMs: event.lastSeenAtMs, sinceMs: event.atMs } : context,
    ),
  },
}).createMachine({
  id: "liveness",
  initial: "offline",
  context: { lastSeenAtMs: null, sinceMs: null },
  states: {
    offline: { on: { SEEN: { guard: "isNewer", target: "online", actions: "recordSeen" } } },
    online: { on: { SILENT: { guard: "isSilence", target: "offline", actions: "recordSilent" } } },
  },
});

export type LivenessState = "offline" | "online";
export const LIVENESS_STATES = ["offline", "online"] as const satisfies readonly LivenessState[];
