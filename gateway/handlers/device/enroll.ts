/** POST enroll: a code is claimed once and its credential is shown once (contract, "POST enroll"). */
import type { z } from "zod";
import { blockedReason, type KillSwitches } from "../../../machines/standing.ts";
import type { DeviceSnapshotView } from "../../../machines/views/device-snapshot.ts";
import { enrollDevice as claimCode } from "../../../services/bus/messages/enrollment-codes.ts";
import type { ReplyOf } from "../../../services/bus/operation.ts";
import type { enrollBodySchema } from "../../contract/device.ts";
import { type Handler, Refusal } from "../../http/handler-context.ts";
import { serverTime } from "../../read-model/polls.ts";
import { ENROLL_RATE, throttleHeaders } from "../../read-model/throttles.ts";

export const enroll: Handler<z.infer<typeof enrollBodySchema>> = async (context) => {
  const { deps, body } = context;
  const retryAfterMs = deps.enrollThrottle.take(context.address, deps.nowMs());
  if (retryAfterMs > 0) {
    throw new Refusal("throttled", { headers: throttleHeaders("enroll", ENROLL_RATE, retryAfterMs) });
  }
  // A code must not be spent by a gateway that could not show the device afterwards.
  deps.requireFresh();
  const switches = deps.switches();
  const { credential, scopes, ...claimed } = await deps.bus.call(claimCode, { code: body.code });
  const device = { ...snapshotOf(claimed, switches), server_time: serverTime(deps.nowMs()) };
  return { status: 201, body: { credential, scopes, device }, headers: { "Cache-Control": "no-store" } };
};

type Claimed = Pick<ReplyOf<typeof claimCode>, "organizationId" | "device" | "station">;

/** The snapshot from the claim itself: the credential is shown once, whether or not this gateway's replica has caught up. */
function snapshotOf({ organizationId, device, station }: Claimed, switches: KillSwitches): DeviceSnapshotView {
  const { stationId, status: stationStatus } = station;
  return {
    device_id: device.deviceId,
    name: device.name,
    kind: device.kind,
    capabilities: device.capabilities,
    status: device.status,
    station_name: station.name,
    station_status: stationStatus,
    handoff_target: device.handoffTarget,
    blocked_reason: blockedReason({ organizationId, stationId, stationStatus, device }, switches),
  };
}
