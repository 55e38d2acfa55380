/** Puts back the kill switches that the bus has lost, and takes out those that have come back although they are off. */
import { announceSwitches } from "../../bus/messages/announce.ts";
import { call } from "../../bus/operation.ts";
import { RELAY_LIMITS } from "../limits.ts";
import { setSwitch } from "../switch-bucket.ts";
import { atOnce } from "./at-once.ts";
import type { TellDeps, Told } from "./tell.ts";

export async function tellSwitches(deps: TellDeps, sinceId: number): Promise<Told> {
  const limit = RELAY_LIMITS.announcedEntries;
  const page = await call(deps.nc, announceSwitches, { sinceId, limit });
  let news = 0;
  await atOnce(page.entries, RELAY_LIMITS.announcedAtOnce, async ({ entry }) => {
    deps.requireLease();
    if ((await setSwitch(deps, entry)).isNews) news += 1;
  });
  return { through: page.entries.at(-1)?.id ?? sinceId, hasMore: page.hasMore, news };
}
