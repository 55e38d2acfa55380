/** One step of a standing machine: the registry stores the status in a row, and the machine decides where it may go. */
import { type AnyStateMachine, type EventFromLogic, transition } from "xstate";
import {
  type DeviceStandingEvent,
  type DeviceStatus,
  deviceStandingMachine,
  type StationStandingEvent,
  type StationStatus,
  stationStandingMachine,
} from "../../machines/standing.ts";
import { RefusedError } from "../bus/refusals.ts";

/** The status of a station after a move; throws `conflict` where its machine does not take the move in this status. */
export function stationAfter(status: StationStatus, move: StationStandingEvent["type"]): StationStatus {
  return after(stationStandingMachine, "station", status, { type: move }) as StationStatus;
}

/** The same for a device. */
export function deviceAfter(status: DeviceStatus, move: DeviceStandingEvent["type"]): DeviceStatus {
  return after(deviceStandingMachine, "device", status, { type: move }) as DeviceStatus;
}

function after<TMachine extends AnyStateMachine>(
  machine: TMachine,
  what: string,
  status: string,
  event: EventFromLogic<TMachine>,
): string {
  const any: AnyStateMachine = machine;
  const before = any.resolveState({ value: status, context: {} });
  // `can` and not a comparison: a pending device that is reset stays pending, although the machine takes the move.
  if (!before.can(event)) {
    throw new RefusedError({
      code: "conflict",
      detail: `A ${status} ${what} cannot be ${PAST[event.type] ?? "moved"}.`,
    });
  }
  return transition(any, before, event)[0].value as string;
}

const PAST: Readonly<Record<string, string>> = {
  CLAIM: "enrolled",
  SUSPEND: "suspended",
  RESUME: "resumed",
  CLOSE: "closed",
  RESET: "reset",
  REVOKE: "revoked",
};
