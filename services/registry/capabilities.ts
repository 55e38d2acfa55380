/** What each kind of device can declare. */
import type { Capability, DeviceKind } from "../../machines/station/state.ts";
import { RefusedError } from "../bus/refusals.ts";

const CAPABILITIES_OF_KIND: Readonly<Record<DeviceKind, readonly Capability[]>> = {
  smart_pos_companion: ["handoff_present", "outcome_report"],
  customer_display: ["display_total", "qr_dynamic_present"],
};

/**
 * The declared capabilities in their usual order without repetition; all of the kind when none are declared. Throws
 * `invalid_request` for one that this kind of device cannot have.
 */
export function capabilitiesFor(kind: DeviceKind, declared: readonly Capability[] | undefined): Capability[] {
  const possible = CAPABILITIES_OF_KIND[kind];
  const foreign = declared?.find((capability) => !possible.includes(capability));
  if (foreign !== undefined) {
    const detail = `A ${kind} cannot have the capability ${foreign}.`;
    throw new RefusedError({ code: "invalid_request", errors: [{ pointer: "/capabilities", detail }] });
  }
  return possible.filter((capability) => declared === undefined || declared.includes(capability));
}

/** Throws `invalid_request` for a launch reference on a device that launches nothing. */
export function requireHandoffTargetFits(kind: DeviceKind, handoffTarget: string | undefined): void {
  if (kind === "smart_pos_companion" || handoffTarget === undefined || handoffTarget === "") return;
  const detail = "Only a smart_pos_companion has a launch reference.";
  throw new RefusedError({ code: "invalid_request", errors: [{ pointer: "/handoff_target", detail }] });
}
