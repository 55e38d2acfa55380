/** The relay's word that the bus knows everything, for tests that run no relay: what the buckets hold, they put there themselves. */
import type { Bus } from "../../services/bus/connection.ts";
import { CREDENTIALS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { noteTold } from "../../services/relay/buckets.ts";

/** Gives it for the server as it runs now. */
export async function sayBucketsAreTold({ nc, js, jsm }: Pick<Bus, "nc" | "js" | "jsm">): Promise<void> {
  const told = { serverId: nc.info?.server_id ?? "" };
  for (const bucket of [SWITCHES, CREDENTIALS, SESSIONS]) await noteTold({ js, jsm }, bucket, told);
}

/** Gives it now and after each start of the server, as the relay does, for as long as the connection lives. */
export async function keepBucketsTold(bus: Bus): Promise<void> {
  await sayBucketsAreTold(bus);
  bus.onChange((isUp) => {
    // A server that goes down again at once is told at its next start.
    if (isUp) void sayBucketsAreTold(bus).catch(() => undefined);
  });
}
