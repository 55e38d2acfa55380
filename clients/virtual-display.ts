/**
 * A customer display without a screen. It uses the device kit and is an ordinary client of the device API. It writes one line
 * for each change.
 *
 *   BASE_URL=http://127.0.0.1:8480 ENROLLMENT_CODE=XXXXX-XXXXX CREDENTIAL_FILE=display.json node clients/virtual-display.ts
 */
import type { DisplayState } from "./device-kit/client.ts";
import { display } from "./device-kit/display.ts";
import { runKitDevice } from "./virtual-device.ts";

function sentence(shown: DisplayState): string {
  if (shown.state === "idle") return "showing idle";
  return `showing ${shown.state}: ${shown.currency} ${shown.amount} for order ${shown.order_display_number}`;
}

let line = "";
await runKitDevice({
  name: "virtual-display",
  isReady: ({ isReady }) => isReady,
  start: (options, { log }) =>
    display({
      ...options,
      render(shown) {
        const next = shown === null ? "" : sentence(shown);
        if (shown !== null && next !== line)
          log.info({ state: shown.state, order: shown.order_display_number, amount: shown.amount }, next);
        line = next;
      },
    }),
});
