/**
 * The checks of a device that a run must have passed, by kind of device and capability. They are those of the suite
 * (`clients/conformance/devices/`), which runs outside of this service; a test compares them.
 */
import type { DeviceKind } from "../../../machines/station/state.ts";
import type { CertifiedCapability } from "../../bus/messages/certification-artifacts.ts";

type CheckedCapability = "enrollment" | "presence" | CertifiedCapability;

const OF_EVERY_DEVICE = {
  enrollment: [
    "device.claims_code_once",
    "device.uses_credential",
    "device.keeps_credential",
    "device.gives_up_credential",
    "device.enrolls_again",
  ],
  presence: [
    "device.sends_heartbeats",
    "device.waits_when_throttled",
    "device.waits_when_unavailable",
    "device.comes_back_unblocked",
    "device.heartbeats_on_a_timer",
    "device.keeps_pace",
  ],
} as const;

export const REQUIRED_CHECKS: Readonly<
  Record<DeviceKind, Readonly<Partial<Record<CheckedCapability, readonly string[]>>>>
> = {
  smart_pos_companion: {
    ...OF_EVERY_DEVICE,
    handoff_present: [
      "device.takes_collection",
      "device.ignores_later_fields",
      "device.trusts_server_time",
      "device.waits_for_slow_body",
      "device.collects_once",
    ],
    outcome_report: [
      "device.reports_success",
      "device.reports_decline",
      "device.reports_cancellation",
      "device.reports_once",
      "device.repeats_lost_report",
      "device.repeats_refused_report",
      "device.repeats_blocked_report",
      "device.reports_after_power_cut",
      "device.never_launches_again",
      "device.never_guesses",
      "device.does_not_retry_expired",
    ],
  },
  customer_display: {
    ...OF_EVERY_DEVICE,
    display_total: [
      "device.polls_display",
      "device.shows_idle",
      "device.shows_total",
      "device.clears_total",
      "device.keeps_unchanged",
      "device.shows_paid",
      "device.hides_paid_when_stale",
      "device.shows_under_later_fields",
      "device.shows_under_other_clock",
      "device.shows_under_new_etags",
      "device.shows_slow_body",
    ],
    qr_dynamic_present: ["device.shows_qr", "device.removes_qr", "device.hides_qr_when_stale"],
  },
};
