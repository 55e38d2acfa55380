import { requirePermission } from "../../bus/access.ts";
import type { bindStation } from "../../bus/messages/sessions.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { RegistryDeps } from "../deps.ts";
import { REGISTRY_LIMITS } from "../limits.ts";
import * as bindings from "../sql/session-stations.ts";
import { getStation } from "../sql/stations.ts";

/**
 * Notes that a session is about to take a station's lease. The session is held open meanwhile: whatever ends it comes
 * before, and then it is refused here, or after, and then it finds the station and notifies it.
 */
export async function handleBindStation(
  deps: RegistryDeps,
  { caller, sessionId, stationId }: RequestOf<typeof bindStation>,
): Promise<ReplyOf<typeof bindStation>> {
  requirePermission(caller, "payments.collect");
  const { organizationId, userId } = caller;
  await deps.sql.begin(async (tx) => {
    if (!(await bindings.holdSessionOpen(tx, { organizationId, userId, sessionId })))
      throw new RefusedError({ code: "session_ended" });
    if ((await getStation(tx, organizationId, stationId)) === undefined) throw new RefusedError({ code: "not_found" });
    await bindings.bindStation(tx, { sessionId, stationId });
    const most = REGISTRY_LIMITS.stationsPerSession;
    if ((await bindings.countBoundStations(tx, sessionId)) > most) {
      const detail = `One session takes at most ${most} stations; log in again to take more.`;
      throw new RefusedError({ code: "conflict", detail });
    }
  });
  return {};
}
