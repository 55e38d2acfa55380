/** Runs one virtual device as a process: settings, log, orderly end, and one sentence when it cannot go on. */

import { type AttachDeps, attach } from "./attach.ts";
import { type CheckIn, createCheckIn } from "./check-in.ts";
import type { DeviceClient } from "./device-client.ts";
import { DeviceStopped } from "./device-error.ts";
import { runDeviceLoop } from "./device-loop.ts";
import { createTransport } from "./device-transport.ts";
import { clientLimits } from "./limits.ts";
import { createDeviceLog, type DeviceLog } from "./log.ts";
import { createPace } from "./pace.ts";
import { readSettings } from "./settings.ts";
import { trustCertificate } from "./trusted-certificate.ts";

export interface DeviceKind {
  /** Also the log's name and, without CREDENTIAL_FILE, the credential file's. */
  readonly name: string;
  readonly createTurn: (deps: {
    client: DeviceClient;
    log: DeviceLog;
    signal: AbortSignal;
    checkIn: CheckIn;
  }) => () => Promise<number>;
  /** Whether a device of this name sends no heartbeats. */
  readonly isSilent: (name: string) => boolean;
}

export interface DeviceRun extends AttachDeps {
  /** Called once, when the device is attached. */
  readonly onReady: () => void;
}

/** Attaches one device and does its work until the signal is aborted. Throws `DeviceStopped` when it cannot go on. */
export async function runDevice(kind: DeviceKind, run: DeviceRun): Promise<void> {
  const { log, onReady } = run;
  const { client, isLive, name } = await attach(run);
  const checkIn = createCheckIn({ client, firstName: name, isSilent: kind.isSilent });
  const ended = new AbortController();
  const signal = AbortSignal.any([run.signal, ended.signal]);
  const turn = kind.createTurn({ client, log, signal, checkIn });
  // A turn may be in a long pause when a heartbeat is refused for good.
  await runDeviceLoop({ checkIn, log, signal, isLive, onReady, turn }).finally(() => ended.abort());
}

/**
 * Runs until SIGTERM, SIGINT or the end of the parent process; notifies a parent
 * `{ready: true}` once the device is live, or `{ready: false, code, message}` when it cannot go on.
 */
export async function runVirtualDevice(kind: DeviceKind): Promise<void> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, stop);
  process.once("disconnect", stop);
  const { signal } = stopping;
  try {
    const settings = readSettings(kind.name, process.env);
    if (settings.certificateFile !== undefined) trustCertificate(settings.certificateFile);
    const log = createDeviceLog({ name: kind.name, level: settings.logLevel });
    const transport = createTransport({ baseUrl: settings.baseUrl, pace: createPace(clientLimits.requestGapMs) });
    const onReady = (): void => {
      log.info({}, "attached");
      tellParent({ ready: true });
    };
    await runDevice(kind, { settings, transport, log, signal, onReady });
  } catch (error) {
    if (!signal.aborted) {
      const message = error instanceof DeviceStopped ? error.message : `The ${kind.name} stopped: ${reasonOf(error)}`;
      const code = error instanceof DeviceStopped ? "device_stopped" : "unexpected";
      process.stderr.write(`${message}\n`);
      tellParent({ ready: false, code, message });
      process.exitCode = 1;
    }
  }
  // An open channel to the parent would keep the process alive.
  if (process.connected) process.disconnect();
}

/** A parent that ends at this moment can no longer be notified; the `disconnect` that follows ends this process. */
function tellParent(message: object): void {
  if (process.connected) process.send?.(message, () => undefined);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : "an unexpected error.";
}
