/** What waits in a station's mailbox: a requester's command or a self-issued one. */
import type { Actor } from "../../machines/actor.ts";
import type { StationCommand } from "../../machines/station/command.ts";
import type { StationState } from "../../machines/station/state.ts";
import { STORAGE_LOW } from "../bus/disk-gate.ts";
import type { RequestedCommand, StationFailure, StationResponse } from "../bus/messages/station-commands.ts";
import { STATION_LIMITS } from "./limits.ts";

/** Commands that only the host gives. */
export type LocalCommand = Extract<
  StationCommand,
  {
    type:
      | "qr_ready"
      | "end_reported"
      | "settlement_succeeded"
      | "settlement_refused"
      | "tick"
      | "rule_out"
      | "device_seen"
      | "device_silent";
  }
>;
export type HostCommand = RequestedCommand | LocalCommand;
export type StationAnswer = StationResponse | StationFailure;

export interface Work {
  readonly commandId: string;
  readonly actor: Actor;
  /**
   * The command, or a function that makes it from the newest commit's state and sequence when its turn has come; undefined
   * when there is nothing left to do.
   */
  readonly command: HostCommand | ((state: StationState, sequence: number) => HostCommand | undefined);
  /** Restores what the log may have lost (`StationRequest`). */
  readonly isRestoring?: true | undefined;
  /** Finds the outcome of an unknown append; other work of the station is answered `unavailable` meanwhile. */
  readonly isAboutUnknown?: boolean;
  /** The id of the HTTP request behind it, for the log. */
  readonly requestId?: string | undefined;
  /** Called exactly once. */
  readonly answer: (answer: StationAnswer) => void;
}

/** Deadlines, liveness and recovery act in the name of the system. */
export const SYSTEM: Actor = { kind: "system", id: 0 };

export const BUSY: StationFailure = { failure: "busy", retryAfterMs: STATION_LIMITS.busyRetryMs };
export const NO_SPACE: StationFailure = { failure: "storage_low", retryAfterMs: STORAGE_LOW.retryAfterMs };
export const UNAVAILABLE: StationFailure = { failure: "unavailable", retryAfterMs: STATION_LIMITS.unavailableRetryMs };

export function isFailure(answer: StationAnswer): answer is StationFailure {
  return "failure" in answer;
}
