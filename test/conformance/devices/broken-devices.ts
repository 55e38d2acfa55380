/** Devices that are broken in one way each, and the check that finds each of them. */
import type { DeviceUnderTest } from "../../../clients/conformance/devices/device.ts";
import type { DeviceKind } from "../../../clients/conformance/devices/device-world.ts";
import { type CompanionFlaw, TestCompanion } from "./test-companion.ts";
import type { Flaw } from "./test-device.ts";
import { type DisplayFlaw, TestDisplay } from "./test-display.ts";

export interface BrokenDevice {
  readonly name: string;
  readonly kind: DeviceKind;
  readonly caughtBy: string;
  /** The check before it in which the device shows its flaw, where that is another one. */
  readonly shownIn: string | undefined;
  readonly make: () => DeviceUnderTest;
}

const companion = (name: Flaw | CompanionFlaw, caughtBy: string, shownIn?: string): BrokenDevice => ({
  name,
  kind: "companion",
  caughtBy: `device.${caughtBy}`,
  shownIn: shownIn && `device.${shownIn}`,
  make: () => new TestCompanion(name),
});
const display = (name: Flaw | DisplayFlaw, caughtBy: string): BrokenDevice => ({
  name,
  kind: "display",
  caughtBy: `device.${caughtBy}`,
  shownIn: undefined,
  make: () => new TestDisplay(name),
});

export const BROKEN_DEVICES: readonly BrokenDevice[] = [
  companion("claims its code twice", "claims_code_once"),
  companion("sends chunked bodies", "claims_code_once"),
  companion("sends a request without its credential", "uses_credential"),
  companion("claims a code at each start", "keeps_credential"),
  companion("continues after 401", "gives_up_credential"),
  display("keeps its first credential", "enrolls_again"),
  display("sends no heartbeat", "sends_heartbeats"),
  companion("sends no heartbeat while a guest pays", "heartbeats_on_a_timer", "never_guesses"),
  companion("stops permanently at 403", "comes_back_unblocked"),
  companion("polls too fast", "keeps_pace"),
  companion("ignores Retry-After of 429", "waits_when_throttled"),
  display("ignores Retry-After of 503", "waits_when_unavailable"),
  companion("trusts its local clock about the deadline", "trusts_server_time"),
  companion("refuses fields that it does not know", "ignores_later_fields"),
  companion("collects again for each ETag", "collects_once"),
  companion("abandons a slow body", "waits_for_slow_body"),
  companion("reports under a new key each time", "repeats_lost_report"),
  companion("reports without a key", "reports_success"),
  companion("sends an amount", "reports_success"),
  companion("sends an amount with a decline", "reports_decline"),
  companion("reports a success after silence", "never_guesses"),
  companion("reports a decline after silence", "never_guesses"),
  companion("reports a decline as a cancellation", "reports_decline"),
  companion("reports a cancellation as a decline", "reports_cancellation"),
  companion("launches again after a power cut", "never_launches_again"),
  companion("forgets a report at 429", "repeats_refused_report"),
  companion("repeats a report after 409", "does_not_retry_expired"),
  companion("repeats an early report after 409", "does_not_retry_expired"),
  companion("repeats a report after 409 under a new key", "does_not_retry_expired"),
  companion("forgets a report without an answer", "repeats_lost_report"),
  companion("forgets a report at 503", "repeats_refused_report"),
  companion("forgets a report at 502", "repeats_refused_report"),
  companion("forgets a report at 403", "repeats_blocked_report"),
  companion("reports each answer of the payment application", "reports_once"),
  companion("forgets its report in a power cut", "reports_after_power_cut"),
  display("shows nothing while idle", "shows_idle"),
  display("rounds the amount", "shows_total"),
  display("keeps showing a total", "clears_total"),
  display("shows nothing for an unchanged total", "keeps_unchanged"),
  display("keeps showing paid without answers", "hides_paid_when_stale"),
  display("polls rarely", "polls_display"),
  display("shows no state with fields that it does not know", "shows_under_later_fields"),
  display("shows nothing by another clock", "shows_under_other_clock"),
  display("shows no state with a strong ETag", "shows_under_new_etags"),
  display("shows nothing of a slow body", "shows_slow_body"),
  display("never shows paid", "shows_paid"),
  display("shows paid with 0.00", "shows_paid"),
  display("shows another QR code", "shows_qr"),
  display("shows a QR code with 0.00", "shows_qr"),
  display("keeps showing a QR code", "removes_qr"),
  display("keeps showing a QR code without answers", "hides_qr_when_stale"),
];
