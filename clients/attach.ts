/** From a stored credential or a one-time code to a working client. */

import { loadCredential, saveCredential } from "./credential-file.ts";
import { createDeviceClient, type DeviceClient, enroll } from "./device-client.ts";
import type { DeviceSnapshot } from "./device-contract.ts";
import { DeviceStopped, failureReason, ServiceRefusal } from "./device-error.ts";
import type { DeviceTransport } from "./device-transport.ts";
import { clientLimits } from "./limits.ts";
import type { DeviceLog } from "./log.ts";
import { createBackoff, pause } from "./pace.ts";
import { repeatUntilAnswered } from "./repeat.ts";
import type { DeviceSettings } from "./settings.ts";

export interface AttachDeps {
  readonly settings: DeviceSettings;
  readonly transport: DeviceTransport;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
}

export interface Attached {
  readonly client: DeviceClient;
  /** True when the credential was tried with a heartbeat: the device is live already. */
  readonly isLive: boolean;
  /** What the device is called. */
  readonly name: string;
}

/** Throws `DeviceStopped` with what to do when neither the stored credential nor the code is accepted. */
export async function attach(deps: AttachDeps): Promise<Attached> {
  const { settings, transport, signal } = deps;
  // With a code at hand the device enrolls again, which writes a new file.
  const onDamaged = (): void => deps.log.warn({ file: settings.credentialFile }, "the credential file is damaged");
  const stored = await loadCredential(
    settings.credentialFile,
    settings.enrollmentCode === undefined ? undefined : onDamaged,
  );
  if (stored !== undefined) {
    const client = createDeviceClient(transport, stored.credential);
    const snapshot = await firstHeartbeat(client, deps);
    if (snapshot !== undefined) return { client, isLive: true, name: snapshot.name };
  }
  if (settings.enrollmentCode === undefined) throw needsCode(stored !== undefined);
  const enrollment = await untilAnswered(() => enroll(transport, settings.enrollmentCode ?? "", signal), deps).catch(
    (error: unknown) => {
      if (error instanceof ServiceRefusal && error.code === "enrollment_code_invalid") throw needsCode(true);
      throw error;
    },
  );
  await saveCredential(settings.credentialFile, {
    device_id: enrollment.device.device_id,
    credential: enrollment.credential,
  });
  const { credential, device, isEffective } = enrollment;
  const client = createDeviceClient(transport, credential);
  if (isEffective) return { client, isLive: false, name: device.name };
  const snapshot = await heartbeatOnceKnown(client, deps);
  return { client, isLive: true, name: snapshot.name };
}

/** A credential that is not yet effective is refused as unknown: the device keeps it and tries it until it is accepted. */
async function heartbeatOnceKnown(client: DeviceClient, deps: AttachDeps): Promise<DeviceSnapshot> {
  const backoff = createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.unknownMaxMs });
  deps.log.warn({ reason: "not_effective" }, "waiting until the service knows the new credential");
  for (;;) {
    const snapshot = await firstHeartbeat(client, deps);
    if (snapshot !== undefined) return snapshot;
    await pause(backoff.nextMs(), deps.signal);
    deps.signal.throwIfAborted();
  }
}

/** The one sentence of a device whose credential is gone. */
export function needsCode(again: boolean): DeviceStopped {
  return new DeviceStopped(
    again
      ? "The device's credential or code is no longer valid: issue a new enrollment code in the back office and start again with ENROLLMENT_CODE set to it."
      : "The device is not enrolled yet: issue an enrollment code in the back office and start again with ENROLLMENT_CODE set to it.",
  );
}

/**
 * Tries the credential; undefined when it is not accepted. With the heartbeat that is due anyway: at one request a second,
 * another one would make the device live a second later. The name is not known before, so one that asks for silence is
 * heard this once.
 */
async function firstHeartbeat(client: DeviceClient, deps: AttachDeps): Promise<DeviceSnapshot | undefined> {
  try {
    return await untilAnswered(() => client.heartbeat({ uptime_s: 0 }, deps.signal), deps);
  } catch (error) {
    if (error instanceof ServiceRefusal && error.httpStatus === 401) return undefined;
    throw error;
  }
}

/** A device starts whenever its power comes on, also before the service: it waits for it without a bound on tries. */
function untilAnswered<T>(attempt: () => Promise<T>, { signal, log }: AttachDeps): Promise<T> {
  let trouble = "";
  const onRetry = (error: unknown): void => {
    const reason = failureReason(error);
    if (reason !== trouble) log.warn({ reason }, "waiting for the service");
    trouble = reason;
  };
  return repeatUntilAnswered(attempt, { signal, maxTries: Number.POSITIVE_INFINITY, onRetry });
}
