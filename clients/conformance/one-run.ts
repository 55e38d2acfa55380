/**
 * One run at a time at a sandbox. The cashier of a run takes a short lease of the station and renews it. A run that finds such
 * a lease waits: when the lease is renewed, another run goes on, and this one does not begin; when it ends, that run was killed.
 * Two runs that begin at the same moment find no lease. The later reset counts, and the run of the earlier one ends.
 */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../limits.ts";
import { asObject, objectOf } from "./expect.ts";
import type { Party, Wire } from "./http.ts";
import { CannotRun, type World } from "./world.ts";

/**
 * A lease that lasts longer is a person's. The header `Date` is in whole seconds and up to two seconds old, and the clocks of the
 * gateway and of the actor host differ, so this is far from the lease of a run, and from that of a person: a quarter of an hour.
 */
const LONGEST_MS = 2 * clientLimits.conformanceLeaseSeconds * 1_000;

/** Another run goes on at the sandbox, and this one changes nothing there. */
export class Taken extends CannotRun {
  constructor(sandboxId: number) {
    super(`Another run goes on at sandbox ${sandboxId}; wait for its end, or give each run a sandbox of its own.`);
  }
}

/** Renews the lease until it is stopped. A renewal that fails is followed by the next one. */
export function keepStation(world: World): { readonly stop: () => Promise<void> } {
  // Its requests are no step of a check. They are awaited, so that none comes after the reset at the end.
  const wire: Wire = { ...world.wire, signal: new AbortController().signal };
  let renewal: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    renewal = world.holdStation(world.cashier.over(wire)).catch(() => undefined);
  }, clientLimits.conformanceRenewMs);
  return {
    stop: async () => {
      clearInterval(timer);
      await renewal;
    },
  };
}

/** Throws `Taken` when another run goes on. A lease that a person has taken is longer, and the reset ends it. */
export async function waitUntilFree(
  owner: Party,
  sandboxId: number,
  { signal, onWait }: { readonly signal: AbortSignal; readonly onWait: (() => void) | undefined },
): Promise<void> {
  const read = await owner.send("GET", `sandboxes/${sandboxId}/`);
  // The reset says why there is no such sandbox.
  if (read.status !== 200) return;
  const { station_id: stationId, cashier } = objectOf(read);
  const { user_id: cashierId } = asObject("`cashier`", cashier);
  let found: unknown;
  for (;;) {
    const answer = await owner.send("GET", `stations/${String(stationId)}/lease/`);
    const lease = answer.status === 200 ? objectOf(answer)["lease"] : null;
    if (lease === null) return;
    const { cashier_id: holderId, expires_at: expiresAt } = asObject("`lease`", lease);
    const leftMs = Date.parse(String(expiresAt)) - Date.parse(answer.headers.get("date") ?? "");
    if (holderId !== cashierId || leftMs > LONGEST_MS) return;
    if (found === undefined) onWait?.();
    else if (found !== expiresAt) throw new Taken(sandboxId);
    found = expiresAt;
    await delay(clientLimits.conformancePollMs, undefined, { signal });
  }
}
