/** Stands in for a relay: refuses each flush at once, so that writers do not wait for a relay that does not run. */
import type { NatsConnection } from "nats";
import { flushOutbox } from "../../services/bus/messages/outbox.ts";
import { serve } from "../../services/bus/operation.ts";
import { RefusedError } from "../../services/bus/refusals.ts";

export async function refuseFlushes(nc: NatsConnection): Promise<void> {
  serve({ nc, log: { warn: () => undefined, error: () => undefined }, queue: "relay" }, flushOutbox, async () => {
    throw new RefusedError({ code: "unavailable" });
  });
  await nc.flush();
}

/** Stands in for the hosts: answers each command with "busy" at once, so that writers do not wait for a host. */
export async function refuseCommands(nc: NatsConnection): Promise<void> {
  nc.subscribe("station.cmd.*.*", {
    callback: (_error, message) => {
      message.respond(JSON.stringify({ failure: "busy", retryAfterMs: 1 }));
    },
  });
  await nc.flush();
}
