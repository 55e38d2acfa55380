/** The work of a virtual customer display: show what the service says, verbatim. */

import type { DeviceClient } from "./device-client.ts";
import type { DisplayState } from "./device-contract.ts";
import { clientLimits } from "./limits.ts";
import type { DeviceLog } from "./log.ts";

export function createDisplayTurn(deps: {
  readonly client: DeviceClient;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
}): () => Promise<number> {
  let shown = "";
  return async () => {
    const display = await deps.client.display(deps.signal);
    if (display !== undefined) {
      const line = sentence(display);
      if (line !== shown)
        deps.log.info({ state: display.state, order: display.order_display_number, amount: display.amount }, line);
      shown = line;
    }
    return clientLimits.displayPollMs;
  };
}

function sentence(display: DisplayState): string {
  if (display.state === "idle") return "showing idle";
  return `showing ${display.state}: ${display.currency} ${display.amount} for order ${display.order_display_number}`;
}
