/** One message of a station log: it contains the whole state (design §2.1). */
import type { Actor } from "../actor.ts";
import type { StationEvent } from "./event.ts";
import type { StationReply } from "./reply.ts";
import {
  type DeviceRow,
  type IntentRow,
  type KnownOrderRow,
  type OlderReasonRow,
  readDevice,
  readIntent,
  readKnownOrder,
  readOlderReason,
  readStoredReply,
  readUnclear,
  readWaitingOrder,
  type StoredReplyRow,
  type UnclearRow,
  type WaitingOrderRow,
  writeDevice,
  writeIntent,
  writeKnownOrder,
  writeOlderReason,
  writeStoredReply,
  writeUnclear,
  writeWaitingOrder,
} from "./rows.ts";
import type { StationState } from "./state.ts";

/** Grows with every change of a commit's format. The tests have golden commits of every released version. */
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

/** A newer program has written the commit: this program cannot know its meaning. */
export class NewerMachineError extends Error {
  readonly code = "newer_machine_version";
  constructor(machineVersion: number) {
    super(
      `A station was committed by machine version ${machineVersion}; this program knows version ${MACHINE_VERSION}.`,
    );
    this.name = "NewerMachineError";
  }
}

/** A commit as the log stores it: the lists of its state are rows (`rows.ts`). */
interface WireCommit extends Omit<Commit, "state"> {
  readonly state: Omit<
    StationState,
    "devices" | "waitingOrders" | "knownOrders" | "unclearCollections" | "ended" | "olderReasons" | "replies"
  > & {
    readonly devices: readonly DeviceRow[];
    readonly waitingOrders: readonly WaitingOrderRow[];
    readonly knownOrders: readonly KnownOrderRow[];
    readonly unclearCollections: readonly UnclearRow[];
    readonly ended: readonly IntentRow[];
    readonly olderReasons: readonly OlderReasonRow[];
    readonly replies: readonly StoredReplyRow[];
  };
}

/** A commit from its text. Throws NewerMachineError for a later version than this program's. */
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
      unclearCollections: state.unclearCollections.map(readUnclear),
      ended: state.ended.map(readIntent),
      olderReasons: state.olderReasons.map(readOlderReason),
      replies: state.replies.map(readStoredReply),
    },
  };
}

/** The text of a commit, for `decodeCommit`. */
export function encodeCommit(commit: Commit): string {
  const { state } = commit;
  const wire: WireCommit = {
    ...commit,
    state: {
      ...state,
      devices: state.devices.map(writeDevice),
      waitingOrders: state.waitingOrders.map(writeWaitingOrder),
      knownOrders: state.knownOrders.map(writeKnownOrder),
      unclearCollections: state.unclearCollections.map(writeUnclear),
      ended: state.ended.map(writeIntent),
      olderReasons: state.olderReasons.map(writeOlderReason),
      replies: state.replies.map(writeStoredReply),
    },
  };
  return JSON.stringify(wire);
}
