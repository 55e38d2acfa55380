/** In the place of a relay: it delivers nothing and answers so at once, so that writers do not wait for a missing relay. */
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

/** In the place of actor hosts: each command is refused at once, so that writers do not wait for a missing host. */
export async function refuseCommands(nc: NatsConnection): Promise<void> {
  nc.subscribe("station.cmd.*.*", {
    callback: (_error, message) => {
      message.respond(JSON.stringify({ failure: "busy", retryAfterMs: 1 }));
    },
  });
  await nc.flush();
}
