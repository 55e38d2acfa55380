/** The settings of the sandbox's devices that checks change, and that the run restores at its end. */
import { z } from "zod";
import { hasStatus, objectOf } from "./expect.ts";
import type { Party } from "./http.ts";
import type { FreshSandbox } from "./world.ts";

export const deviceSettingsSchema = z.object({
  device_id: z.int(),
  handoff_target: z.string(),
  capabilities: z.array(z.string()),
});
export type DeviceSettings = z.infer<typeof deviceSettingsSchema>;

async function settingsOf(owner: Party, deviceId: number): Promise<DeviceSettings> {
  return deviceSettingsSchema.parse(objectOf(hasStatus(await owner.send("GET", `devices/${deviceId}/`), 200)));
}

export async function readSettings(
  owner: Party,
  { displayId, companionId }: FreshSandbox,
): Promise<readonly DeviceSettings[]> {
  return [await settingsOf(owner, displayId), await settingsOf(owner, companionId)];
}

/** Sends only what differs: a display has no launch reference to be set. */
export async function restoreSettings(owner: Party, settings: readonly DeviceSettings[]): Promise<void> {
  for (const { device_id: deviceId, handoff_target, capabilities } of settings) {
    const now = await settingsOf(owner, deviceId);
    const json = {
      ...(now.handoff_target === handoff_target ? {} : { handoff_target }),
      ...(now.capabilities.join() === capabilities.join() ? {} : { capabilities }),
    };
    if (Object.keys(json).length > 0) hasStatus(await owner.send("PATCH", `devices/${deviceId}/`, { json }), 200);
  }
}
