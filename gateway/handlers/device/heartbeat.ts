/** POST heartbeat: durable before it is answered, then the device's own snapshot from memory (contract, "POST heartbeat"). */
import type { z } from "zod";
import type { heartbeatBodySchema } from "../../contract/device.ts";
import type { DeviceHandler } from "../../http/handler-context.ts";
import { serverTime } from "../../read-model/polls.ts";
import { TAIL } from "../../read-model/rendered.ts";

export const heartbeat: DeviceHandler<z.infer<typeof heartbeatBodySchema>> = async (context) => {
  const { deps, device, body } = context;
  await deps.bus.heartbeat(device, { atMs: deps.nowMs(), summary: body.summary ?? {} });
  return { status: 200, ready: deps.deviceView("self", device).head + serverTime(deps.nowMs()) + TAIL };
};
