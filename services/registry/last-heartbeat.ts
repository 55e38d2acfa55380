import { z } from "zod";
import { LIVENESS } from "../bus/streams.ts";
import { heartbeatSubject } from "../bus/subjects.ts";
import type { RegistryDeps } from "./deps.ts";
import type { DeviceRow } from "./sql/devices.ts";

const heartbeatSchema = z.object({ atMs: z.number(), summary: z.record(z.string(), z.unknown()) });

/** The device's last heartbeat, read from the LIVENESS stream by its subject; null when it was never heard. */
export async function readLastHeartbeat(
  deps: Pick<RegistryDeps, "jsm">,
  device: Pick<DeviceRow, "station_id" | "device_id">,
): Promise<z.infer<typeof heartbeatSchema> | null> {
  const subject = heartbeatSubject(device.station_id, device.device_id);
  const message = await deps.jsm.direct.getMessage(LIVENESS.name, { last_by_subj: subject });
  return message === null ? null : heartbeatSchema.parse(message.json());
}
