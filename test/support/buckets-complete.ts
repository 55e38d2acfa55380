/** The relay's notice that a bucket is complete, for tests without a relay: they put the entries into the buckets themselves. */
import type { Bus } from "../../services/bus/connection.ts";
import { CREDENTIALS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { noteComplete } from "../../services/relay/buckets.ts";

/** Writes it for the server as it runs now. */
export async function noteBucketsComplete({ nc, js, jsm }: Pick<Bus, "nc" | "js" | "jsm">): Promise<void> {
  const notice = { serverId: nc.info?.server_id ?? "" };
  for (const bucket of [SWITCHES, CREDENTIALS, SESSIONS]) await noteComplete({ js, jsm }, bucket, notice);
}

/** Writes it now and after each start of the server, as the relay does, for as long as the connection lives. */
export async function keepBucketsComplete(bus: Bus): Promise<void> {
  await noteBucketsComplete(bus);
  bus.onChange((isUp) => {
    // A server that goes down again at once gets it at its next start.
    if (isUp) void noteBucketsComplete(bus).catch(() => undefined);
  });
}
