/** One message of a station log: the entry is the snapshot (design §2.1). */
import type { Actor } from "../actor.ts";
import type { StationEvent } from "./event.ts";
import type { StationReply } from "./reply.ts";
import {
  type DeviceRow,
  type DoubtRow,
  type IntentRow,
  type KnownOrderRow,
  readDevice,
  readDoubt,
  readIntent,
  readKnownOrder,
  readStoredReply,
  readWaitingOrder,
  type StoredReplyRow,
  type WaitingOrderRow,
  writeDevice,
  writeDoubt,
  writeIntent,
  writeKnownOrder,
  writeStoredReply,
  writeWaitingOrder,
} from "./rows.ts";
import type { StationState } from "./state.ts";

/** Grows with every change of the committed shape; the tests keep golden commits of every released version. */
export const MACHINE_VERSION = 1;

export interface Commit {
  readonly machineVersion: number;
  /** Counts a station's commits from 1 without gaps; not the stream sequence. */
  readonly version: number;
  readonly atMs: number;
  readonly commandId: string;
  readonly actor: Actor;
  readonly events: readonly StationEvent[];
  readonly reply: StationReply;
  readonly state: StationState;
}

/** Raised when a commit was written by a newer machine than this program knows: it must not guess at its meaning. */
export class NewerMachineError extends Error {
  readonly code = "newer_machine_version";
  constructor(machineVersion: number) {
    super(
      `A station was committed by machine version ${machineVersion}; this program knows version ${MACHINE_VERSION}.`,
    );
    this.name = "NewerMachineError";
  }
}

/** A commit as it is written: the lists of its state are rows (rows.ts). */
interface WireCommit extends Omit<Commit, "state"> {
  readonly state: Omit<
    StationState,
    "devices" | "waitingOrders" | "knownOrders" | "doubts" | "ended" | "olderReasons" | "replies"
  > & {
    readonly devices: readonly DeviceRow[];
    readonly waitingOrders: readonly WaitingOrderRow[];
    readonly knownOrders: readonly KnownOrderRow[];
    readonly doubts: readonly DoubtRow[];
    readonly ended: readonly IntentRow[];
    readonly olderReasons: readonly DoubtRow[];
    readonly replies: readonly StoredReplyRow[];
  };
}

/** A commit from its bytes. Throws NewerMachineError for a later version than this program's. */
export function decodeCommit(text: string): Commit {
  const wire = JSON.parse(text) as WireCommit;
  if (wire.machineVersion > MACHINE_VERSION) throw new NewerMachineError(wire.machineVersion);
  const { state } = wire;
  return {
    ...wire,
    state: {
      ...state,
      devices: state.devices.map(readDevice),
      waitingOrders: state.waitingOrders.map(readWaitingOrder),
      knownOrders: state.knownOrders.map(readKnownOrder),
      doubts: state.doubts.map(readDoubt),
      ended: state.ended.map(readIntent),
      olderReasons: state.olderReasons.map(readDoubt),
      replies: state.replies.map(readStoredReply),
    },
  };
}

/** A commit as its bytes: what `decodeCommit` reads. */
export function encodeCommit(commit: Commit): string {
  const { state } = commit;
  const wire: WireCommit = {
    ...commit,
    state: {
      ...state,
      devices: state.devices.map(writeDevice),
      waitingOrders: state.waitingOrders.map(writeWaitingOrder),
      knownOrders: state.knownOrders.map(writeKnownOrder),
      doubts: state.doubts.map(writeDoubt),
      ended: state.ended.map(writeIntent),
      olderReasons: state.olderReasons.map(writeDoubt),
      replies: state.replies.map(writeStoredReply),
    },
  };
  return JSON.stringify(wire);
}
