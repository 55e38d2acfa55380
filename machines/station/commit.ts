/** One message of STATION_LOG: the entry is the snapshot (design §2.1). */
import type { Actor } from "../actor.ts";
import type { StationEvent } from "./event.ts";
import type { StationReply } from "./reply.ts";
import type { StationState } from "./state.ts";

/** Grows with every change of the committed shape; golden snapshots of every released version stay in the tests. */
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

/** A commit from its bytes. Older versions are lifted to the current shape here, one step per version. */
export function decodeCommit(text: string): Commit {
  const commit = JSON.parse(text) as Commit;
  if (commit.machineVersion > MACHINE_VERSION) throw new NewerMachineError(commit.machineVersion);
  return commit;
}

export function encodeCommit(commit: Commit): string {
  return JSON.stringify(commit);
}
