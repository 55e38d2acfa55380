/** Writes the relay's notice that a bucket is complete, for tests that run no relay and fill the buckets themselves. */
import type { Bus } from "../../services/bus/connection.ts";
import { CREDENTIALS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { noteComplete } from "../../services/relay/buckets.ts";

/** Writes the notice once, for the server process that runs now. */
export async function noteBucketsComplete({ nc, js, jsm }: Pick<Bus, "nc" | "js" | "jsm">): Promise<void> {
  const notice = { serverId: nc.info?.server_id ?? "" };
  for (const bucket of [SWITCHES, CREDENTIALS, SESSIONS]) await noteComplete({ js, jsm }, bucket, notice);
}

/** Writes the notice now and after each start of the server, as the relay does, until the connection is closed. */
export async function keepBucketsComplete(bus: Bus): Promise<void> {
  await noteBucketsComplete(bus);
  bus.onChange((isUp) => {
    // A server that stops again before the write gets the notice at its next start.
    if (isUp) void noteBucketsComplete(bus).catch(() => undefined);
  });
}
