/**
 * A customer display without a screen. It is an ordinary client of the device API and writes one line per change.
 *
 *   BASE_URL=http://127.0.0.1:8480 ENROLLMENT_CODE=XXXXX-XXXXX CREDENTIAL_FILE=display.json node clients/virtual-display.ts
 */
import type { DisplayState } from "./device/client.ts";
import type { TurnDeps } from "./device/loop.ts";
import { clientLimits } from "./limits.ts";
import { runVirtualDevice } from "./virtual-device.ts";

/** Shows the service's state of the display, verbatim. */
function createDisplayTurn({ client, log, signal }: TurnDeps): () => Promise<number> {
  let shown = "";
  return async () => {
    const display = await client.display(signal);
    if (display !== undefined) {
      const line = sentence(display);
      if (line !== shown)
        log.info({ state: display.state, order: display.order_display_number, amount: display.amount }, line);
      shown = line;
    }
    return clientLimits.displayPollMs;
  };
}

function sentence(display: DisplayState): string {
  if (display.state === "idle") return "showing idle";
  return `showing ${display.state}: ${display.currency} ${display.amount} for order ${display.order_display_number}`;
}

await runVirtualDevice({ name: "virtual-display", createTurn: createDisplayTurn, isSilent: () => false });
