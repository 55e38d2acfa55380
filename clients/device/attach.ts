/** From a stored credential or a one-time code to a working client. The credential is in one file, which only its owner can read. */
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { clientLimits } from "../limits.ts";
import { createDeviceClient, type DeviceClient, type DeviceSnapshot, enroll } from "./client.ts";
import { createBackoff, pause, repeatUntilAnswered } from "./pace.ts";
import { DeviceStopped, type DeviceTransport, failureReason, ServiceError } from "./transport.ts";

export interface DeviceLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface AttachDeps {
  readonly credentialFile: string;
  /** Needed on the first start and after a reset; ignored while the stored credential is accepted. */
  readonly enrollmentCode: string | undefined;
  readonly transport: DeviceTransport;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
}

interface Attached {
  readonly client: DeviceClient;
  /** True when the service has just accepted a heartbeat: the device is live already. */
  readonly isLive: boolean;
  /** What the device is called. */
  readonly name: string;
}

/** Throws `DeviceStopped` with what to do when neither the stored credential nor the code is accepted. */
export async function attach(deps: AttachDeps): Promise<Attached> {
  const { credentialFile, enrollmentCode, transport, signal } = deps;
  // When the device has a code, it enrolls again and writes a new file.
  const onDamaged = (): void => deps.log.warn({ file: credentialFile }, "the credential file is damaged");
  const stored = await loadCredential(credentialFile, enrollmentCode === undefined ? undefined : onDamaged);
  if (stored !== undefined) {
    const client = createDeviceClient(transport, stored.credential);
    const snapshot = await firstHeartbeat(client, deps);
    if (snapshot !== undefined) return { client, isLive: true, name: snapshot.name };
  }
  if (enrollmentCode === undefined) throw needsCode(stored !== undefined);
  const { credential, device, isEffective } = await untilAnswered(
    () => enroll(transport, enrollmentCode, signal),
    deps,
  ).catch((error: unknown) => {
    if (error instanceof ServiceError && error.code === "enrollment_code_invalid") throw needsCode(true);
    throw error;
  });
  await saveCredential(credentialFile, { device_id: device.device_id, credential });
  const client = createDeviceClient(transport, credential);
  if (isEffective) return { client, isLive: false, name: device.name };
  const snapshot = await heartbeatOnceEffective(client, deps);
  return { client, isLive: true, name: snapshot.name };
}

/** A credential that is not yet effective is refused as unknown: the device repeats its heartbeat until it is accepted. */
async function heartbeatOnceEffective(client: DeviceClient, deps: AttachDeps): Promise<DeviceSnapshot> {
  const backoff = createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.unknownMaxMs });
  deps.log.warn({ reason: "not_effective" }, "waiting until the service knows the new credential");
  for (;;) {
    const snapshot = await firstHeartbeat(client, deps);
    if (snapshot !== undefined) return snapshot;
    await pause(backoff.nextMs(), deps.signal);
    deps.signal.throwIfAborted();
  }
}

/** The one sentence of a device whose credential is not accepted. */
export function needsCode(again: boolean): DeviceStopped {
  const because = again ? "The device's credential or code is no longer valid" : "The device is not enrolled yet";
  return new DeviceStopped(
    `${because}: issue ${again ? "a new" : "an"} enrollment code in the back office and start again with ENROLLMENT_CODE set to it.`,
  );
}

/**
 * Tries the credential; undefined when it is not accepted. The device sends the heartbeat that is due anyway: at one request
 * a second, another request would make it live a second later. The device does not know its name before, so one whose name
 * asks for silence sends this one heartbeat.
 */
async function firstHeartbeat(client: DeviceClient, deps: AttachDeps): Promise<DeviceSnapshot | undefined> {
  try {
    return await untilAnswered(() => client.heartbeat({ uptime_s: 0 }, deps.signal), deps);
  } catch (error) {
    if (error instanceof ServiceError && error.httpStatus === 401) return undefined;
    throw error;
  }
}

/** A device starts whenever its power comes on, also before the service: it waits for it without a bound on tries. */
function untilAnswered<T>(attempt: () => Promise<T>, { signal, log }: AttachDeps): Promise<T> {
  let logged = "";
  const onRetry = (error: unknown): void => {
    const reason = failureReason(error);
    if (reason !== logged) log.warn({ reason }, "waiting for the service");
    logged = reason;
  };
  return repeatUntilAnswered(attempt, { signal, maxTries: Number.POSITIVE_INFINITY, onRetry });
}

const credentialSchema = z.object({ device_id: z.int(), credential: z.string().min(1) });
type StoredCredential = z.infer<typeof credentialSchema>;

/**
 * The stored credential, or undefined when there is none yet. With `onDamaged`, which is then called, a damaged file counts
 * as none. Throws `DeviceStopped` when the file cannot be used.
 */
export async function loadCredential(path: string, onDamaged?: () => void): Promise<StoredCredential | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new DeviceStopped(`The credential file ${path} cannot be read.`, { cause: error });
  }
  // A copied or restored file may be readable by all users. Where nothing can be written, it stays so.
  await chmod(path, 0o600).catch(() => undefined);
  try {
    return credentialSchema.parse(JSON.parse(text));
  } catch (error) {
    if (onDamaged !== undefined) {
      onDamaged();
      return undefined;
    }
    throw new DeviceStopped(`The credential file ${path} is damaged; delete it and enroll again.`, { cause: error });
  }
}

/** Writes beside and renames, so that a crash leaves the old or the new credential, never half of one. */
export async function saveCredential(path: string, stored: StoredCredential): Promise<void> {
  const temporary = `${path}.${process.pid}.new`;
  try {
    await makeFolder(dirname(path));
    await writeFile(temporary, `${JSON.stringify(stored)}\n`, { mode: 0o600, flush: true });
    await rename(temporary, path);
  } catch (error) {
    throw new DeviceStopped(`The credential file ${path} cannot be written.`, { cause: error });
  }
}

/** Makes a folder and those above it that are missing. Not by `recursive`, which on Node 22 never returns below /proc or /sys. */
async function makeFolder(path: string): Promise<void> {
  if (existsSync(path)) return;
  await makeFolder(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    // Another device may make it at the same time.
    if (!existsSync(path)) throw error;
  }
}
