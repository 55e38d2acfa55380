/**
 * Allows one run at a time at a sandbox. The cashier of a run takes a short lease of the station and renews it. A run that finds
 * such a lease waits. When the lease is renewed, another run is active, and this run does not begin. When the lease ends, the
 * other run was killed. Two runs that begin at the same moment find no lease: the later reset wins, and the other run ends.
 */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../limits.ts";
import { hasTwoDecimals } from "./currencies.ts";
import { asObject, objectOf } from "./expect.ts";
import type { Party, Wire } from "./http.ts";
import { CannotRun, type World } from "./world.ts";

/**
 * A lease that lasts longer is a person's. The header `Date` has whole seconds and may be two seconds old, and the clocks of
 * gateway and actor host differ. So this value is far from a run's lease, and from a person's lease of a quarter of an hour.
 */
const LONGEST_MS = 2 * clientLimits.conformanceLeaseSeconds * 1_000;

/** Another run is active at the sandbox, so this run changes nothing there. */
export class Taken extends CannotRun {
  constructor(sandboxId: number) {
    super(`Another run is active at sandbox ${sandboxId}; wait for its end, or use another sandbox for this run.`);
  }
}

/** Renews the lease until it is stopped. After a failed renewal it tries again at the next interval. */
export function keepStation(world: World): { readonly stop: () => Promise<void> } {
  // Its requests are no steps of a check. `stop` awaits them, so that none arrives after the final reset.
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

/**
 * Throws `CannotRun` for a sandbox in a currency without two decimals, and `Taken` when another run is active. A person's lease is
 * longer, and the reset ends it.
 */
export async function waitUntilFree(
  owner: Party,
  sandboxId: number,
  { signal, onWait }: { readonly signal: AbortSignal; readonly onWait: (() => void) | undefined },
): Promise<void> {
  const read = await owner.send("GET", `sandboxes/${sandboxId}/`);
  // Without such a sandbox, the reset reports the reason.
  if (read.status !== 200) return;
  const { station_id: stationId, cashier, currency } = objectOf(read);
  if (!hasTwoDecimals(String(currency)))
    throw new CannotRun(
      `Sandbox ${sandboxId} has the currency ${String(currency)}, and the suite orders amounts with two decimals; use a sandbox in a currency such as EUR.`,
    );
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
