/** From a stored credential or a one-time code to a working client. */
import { loadCredential, saveCredential } from "./credential-file.ts";
import { createDeviceClient, type DeviceClient, enroll } from "./device-client.ts";
import { DeviceStopped, ServiceRefusal } from "./device-error.ts";
import type { DeviceLog } from "./device-loop.ts";
import type { DeviceTransport } from "./device-transport.ts";
import { repeatUntilAnswered } from "./repeat.ts";
import type { DeviceSettings } from "./settings.ts";

export interface AttachDeps {
  readonly settings: DeviceSettings;
  readonly transport: DeviceTransport;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
}

/** Throws `DeviceStopped` with what to do when neither the stored credential nor the code is accepted. */
export async function attach(deps: AttachDeps): Promise<DeviceClient> {
  const { settings, transport, signal } = deps;
  // With a code at hand the device enrolls anew, which writes the file anew.
  const onDamaged = (): void => deps.log.warn({ file: settings.credentialFile }, "the credential file is damaged");
  const stored = await loadCredential(
    settings.credentialFile,
    settings.enrollmentCode === undefined ? undefined : onDamaged,
  );
  if (stored !== undefined) {
    const client = createDeviceClient(transport, stored.credential);
    if (await isAccepted(client, signal)) return client;
  }
  if (settings.enrollmentCode === undefined) throw needsCode(stored !== undefined);
  const enrollment = await untilAnswered(() => enroll(transport, settings.enrollmentCode ?? "", signal), signal).catch(
    (error: unknown) => {
      if (error instanceof ServiceRefusal && error.code === "enrollment_code_invalid") throw needsCode(true);
      throw error;
    },
  );
  await saveCredential(settings.credentialFile, {
    device_id: enrollment.device.device_id,
    credential: enrollment.credential,
  });
  return createDeviceClient(transport, enrollment.credential);
}

/** The one sentence of a device whose credential is gone. */
export function needsCode(again: boolean): DeviceStopped {
  return new DeviceStopped(
    again
      ? "The device's credential or code is no longer valid: issue a new enrollment code in the back office and start again with ENROLLMENT_CODE set to it."
      : "The device is not enrolled yet: issue an enrollment code in the back office and start again with ENROLLMENT_CODE set to it.",
  );
}

async function isAccepted(client: DeviceClient, signal: AbortSignal): Promise<boolean> {
  try {
    await untilAnswered(() => client.me(signal), signal);
    return true;
  } catch (error) {
    if (error instanceof ServiceRefusal && error.httpStatus === 401) return false;
    throw error;
  }
}

/** A device starts whenever its power comes on, also before the service: it waits for it without a bound on tries. */
function untilAnswered<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return repeatUntilAnswered(attempt, { signal, maxTries: Number.POSITIVE_INFINITY });
}
