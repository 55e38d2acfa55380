/** A customer display. The integrator writes `render`. */
import type { DisplayState } from "./client.ts";
import {
  type DisplayEvent,
  type DisplayMachineState,
  type DisplayWorkEffect,
  displayStep,
  firstDisplayState,
} from "./display-machine.ts";
import { type Device, type DeviceOptions, runDevice } from "./run-device.ts";

export interface Freshness {
  /** The time since the service's last answer. */
  readonly ageMs: number;
  /** True when the service has not answered for some time: show that. */
  readonly isStale: boolean;
  /** Empty, or why the device may not act: show that. */
  readonly blockedReason: string;
  /** True when a person has to enter a new code. */
  readonly needsCode: boolean;
}

export interface DisplayOptions extends DeviceOptions<DisplayMachineState> {
  /**
   * Shows `state`, `amount` and the other fields unchanged. Null: the display must show no state. The kit hides a QR code and
   * `paid` in this way as soon as they are stale, and every state from before a block.
   */
  readonly render: (display: DisplayState | null, freshness: Freshness) => void;
}
export type Display = Device<DisplayMachineState>;

/** Starts a display. It runs until it is stopped. */
export function display(options: DisplayOptions): Display {
  return runDevice<DisplayMachineState, DisplayEvent, DisplayWorkEffect>(options, {
    first: firstDisplayState(),
    step: (state, event, platform) => displayStep(state, event, { atMs: platform.nowMs(), random: platform.random() }),
    perform(effect, requests) {
      switch (effect.type) {
        case "poll":
          return requests.send(
            requests.client.display(),
            ({ value }) => (value === undefined ? { type: "polled" } : { type: "polled", display: value }),
            (failure) => ({ type: "poll_failed", failure }),
          );
        case "render": {
          const { display: shown, isStale, blockedReason, needsCode } = effect.view;
          return requests.callBack(() =>
            options.render(shown, { ageMs: effect.age_ms, isStale, blockedReason, needsCode }),
          );
        }
      }
    },
  });
}
