/**
 * A device's liveness as its station commits it. Heartbeats themselves never reach the log, only these two changes do.
 *
 *              SEEN
 *   ┌─────────┐ ─────► ┌────────┐
 *   │ offline │        │ online │
 *   └─────────┘ ◄───── └────────┘
 *              SILENT
 *
 * A device starts offline: it is live only after its first heartbeat (contract, "Device liveness"). SEEN must be newer than
 * what is committed and SILENT must not be older, so that a message that was overtaken on its way changes nothing.
 */
import { assign, setup } from "xstate";

export interface LivenessRecord {
  /** When the last heartbeat came, as of this commit; null when never. Newer heartbeats are in the LIVENESS stream. */
  readonly lastSeenAtMs: number | null;
  /** Since when the device is in this state; null when no heartbeat ever came. */
  readonly sinceMs: number | null;
}

export type LivenessEvent =
  | { readonly type: "SEEN"; readonly seenAtMs: number }
  | { readonly type: "SILENT"; readonly lastSeenAtMs: number; readonly atMs: number };

export const livenessMachine = setup({
  types: { context: {} as LivenessRecord, events: {} as LivenessEvent },
  guards: {
    // A heartbeat that overtook its own silence on the way must not bring a device back from the past.
    isNewer: ({ context, event }) =>
      event.type === "SEEN" && (context.lastSeenAtMs === null || event.seenAtMs > context.lastSeenAtMs),
    // A host that slept through a take-over knows less than this commit does; its silence is not the device's.
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
