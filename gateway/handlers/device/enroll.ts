/** POST enroll: a code is claimed once and its credential is shown once (contract, "POST enroll"). */
import type { z } from "zod";
import { enroll as claimCode } from "../../../services/bus/messages/registry.ts";
import type { enrollBodySchema } from "../../contract/device.ts";
import { render, TAIL } from "../../polls/rendered.ts";
import { serverTime } from "../../polls/server-time.ts";
import { ENROLL_RATE } from "../../throttle/limits.ts";
import { throttleHeaders } from "../../throttle/token-bucket.ts";
import { type Context, type Handler, Refusal } from "../context.ts";

export const enroll: Handler<z.infer<typeof enrollBodySchema>> = async (context) => {
  const { deps, body } = context;
  const retryAfterMs = deps.enrollThrottle.take(context.address, deps.nowMs());
  if (retryAfterMs > 0) {
    throw new Refusal("throttled", { headers: throttleHeaders("enroll", ENROLL_RATE, retryAfterMs) });
  }
  // A code must not be spent by a gateway that could not show the device afterwards.
  deps.requireFresh();
  const { credential, scopes, deviceId, stationId } = await deps.bus.call(claimCode, { code: body.code });
  const device = snapshotOf(context, stationId, deviceId);
  const text = `{"credential":${JSON.stringify(credential)},"scopes":${JSON.stringify(scopes)},"device":${device}}`;
  return { status: 201, ready: text, headers: { "Cache-Control": "no-store" } };
};

/** The snapshot as JSON text. Without one the credential is of no use: the owner issues another code. */
function snapshotOf(context: Context<unknown>, stationId: number, deviceId: number): string {
  const { deps } = context;
  const nowMs = deps.nowMs();
  const station = deps.station(stationId);
  const from = { commit: new Uint8Array(), switches: deps.switches(), nowMs };
  const view = station && render("self", station, deviceId, from);
  if (view === undefined) throw new Refusal("unavailable");
  return view.head + serverTime(nowMs) + TAIL;
}
