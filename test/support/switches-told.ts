/** The relay's word that the bus knows every kill switch, for tests that run no relay: what is on, they put there themselves. */
import type { Bus } from "../../services/bus/connection.ts";
import { noteSwitchesTold } from "../../services/relay/switch-bucket.ts";

/** Gives it for the server as it runs now. */
export async function sayAllSwitchesAreTold({ nc, js }: Pick<Bus, "nc" | "js">): Promise<void> {
  await noteSwitchesTold({ js }, { serverId: nc.info?.server_id ?? "" });
}

/** Gives it now and after each start of the server, as the relay does, for as long as the connection lives. */
export async function keepSwitchesTold(bus: Bus): Promise<void> {
  await sayAllSwitchesAreTold(bus);
  bus.onChange((isUp) => {
    // A server that goes down again at once is told at its next start.
    if (isUp) void sayAllSwitchesAreTold(bus).catch(() => undefined);
  });
}
