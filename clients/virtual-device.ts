/** Runs one virtual device as a process: its settings, its log, its end, and one sentence when it cannot continue. */
import { type Logger, pino, stdTimeFunctions } from "pino";
import { z } from "zod";
import { needsCode } from "./device/attach.ts";
import { type DeviceKind, runDevice } from "./device/loop.ts";
import { createPace } from "./device/pace.ts";
import { createTransport, DeviceStopped, trustCertificate } from "./device/transport.ts";
import type { DeviceState } from "./device-kit/device-machine.ts";
import type { Device, DeviceOptions } from "./device-kit/run-device.ts";
import { fileStorage } from "./device-kit/storage/file.ts";
import { clientLimits } from "./limits.ts";

/**
 * Runs until SIGTERM, SIGINT or the end of the parent process. Sends a parent process `{ready: true}` once the device is
 * live, or `{ready: false, code, message}` when it cannot continue.
 */
export function runVirtualDevice(kind: DeviceKind): Promise<void> {
  return runProcess(kind.name, ({ settings, log, onReady, signal }) =>
    runDevice(kind, {
      credentialFile: settings.CREDENTIAL_FILE ?? `.data/${kind.name}.json`,
      enrollmentCode: settings.ENROLLMENT_CODE || undefined,
      transport: createTransport({ baseUrl: settings.BASE_URL, pace: createPace(clientLimits.requestGapMs) }),
      log,
      signal,
      onReady,
    }),
  );
}

type KitDevice = (options: DeviceOptions<DeviceState>, log: Logger) => Device<DeviceState>;

/** The same for a device of the kit. */
export function runKitDevice(name: string, start: KitDevice): Promise<void> {
  return runProcess(name, async ({ settings, log, onReady, signal }) => {
    const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
    const code = settings.ENROLLMENT_CODE || undefined;
    const report = createReporter(log, onReady, () => reject(needsCode(code !== undefined)));
    const options = {
      baseUrl: settings.BASE_URL,
      storage: fileStorage(settings.CREDENTIAL_FILE ?? `.data/${name}.json`),
      code,
      onState(state: DeviceState) {
        if (state.record !== null && state.phase === "needs_code") reject(needsCode(true));
        else if (state.phase === "enrolled" && state.heartbeat === "off")
          reject(new DeviceStopped(state.problem?.detail ?? "The service refuses the heartbeats."));
        else report(state);
      },
    };
    const device = start(options, log);
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) resolve();
    try {
      await ended;
    } finally {
      device.stop();
    }
  });
}

/** Writes down what changes: that the device is live, why it is held up, and that it goes on. */
function createReporter(log: Logger, onReady: () => void, onNeedsCode: () => void): (state: DeviceState) => void {
  let wasReady = false;
  let logged = "";
  return ({ phase, isReady, blockedReason, problem }) => {
    if (phase === "needs_code") return onNeedsCode();
    if (isReady && !wasReady) onReady();
    wasReady ||= isReady;
    const code = problem?.code === "no_answer" ? "unreachable" : (problem?.code ?? "");
    const reason = blockedReason || code;
    if (reason === logged) return;
    if (reason !== "") log.warn({ reason }, problem?.detail ?? reason);
    else if (wasReady) log.info({}, "the service accepts requests again");
    logged = reason;
  };
}

interface ProcessDeps {
  readonly settings: z.infer<typeof settingsSchema>;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Called once, when the device is live. */
  readonly onReady: () => void;
}

async function runProcess(name: string, run: (deps: ProcessDeps) => Promise<void>): Promise<void> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, stop);
  process.once("disconnect", stop);
  const { signal } = stopping;
  try {
    const settings = readSettings(name, process.env);
    if (settings.GATEWAY_CERTIFICATE_FILE) trustCertificate(settings.GATEWAY_CERTIFICATE_FILE);
    const log = createDeviceLog(name, settings.LOG_LEVEL);
    const onReady = (): void => {
      log.info({}, "attached");
      notifyParent({ ready: true });
    };
    await run({ settings, log, signal, onReady });
  } catch (error) {
    if (!signal.aborted) {
      const isKnown = error instanceof DeviceStopped;
      const reason = error instanceof Error ? error.message : "an unexpected error.";
      const message = isKnown ? reason : `The ${name} stopped: ${reason}`;
      process.stderr.write(`${message}\n`);
      notifyParent({ ready: false, code: isKnown ? "device_stopped" : "unexpected", message });
      process.exitCode = 1;
    }
  }
  // An open channel to the parent would keep the process alive.
  if (process.connected) process.disconnect();
}

/** Ignores an error: a parent that has just ended receives nothing, and the `disconnect` that follows ends this process. */
function notifyParent(message: object): void {
  if (process.connected) process.send?.(message, () => undefined);
}

const settingsSchema = z.object({
  /** The address of the service, without a path. */
  BASE_URL: z.url({ protocol: /^https?$/ }).default("http://127.0.0.1:8480"),
  /** The certificate of the service in PEM; the device trusts it in addition to Node's authorities. */
  GATEWAY_CERTIFICATE_FILE: z.string().optional(),
  /** The device needs a code at its first start and after a reset. */
  ENROLLMENT_CODE: z.string().optional(),
  CREDENTIAL_FILE: z.string().min(1).optional(),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
});

/** Throws `DeviceStopped` with one sentence when a setting cannot be used. */
function readSettings(name: string, env: NodeJS.ProcessEnv): z.infer<typeof settingsSchema> {
  const parsed = settingsSchema.safeParse(env);
  if (parsed.success) return parsed.data;
  const names = [...new Set(parsed.error.issues.map((issue) => String(issue.path[0])))].join(", ");
  throw new DeviceStopped(`The ${name} cannot start: check the setting ${names}.`);
}

/** The log never contains these fields; `code` is an enrollment code. */
const SECRET_FIELDS = ["credential", "code", "authorization"];

/** One JSON line per event on standard output, with the fields that the services' logs have. */
function createDeviceLog(name: string, level: string): Logger {
  const settings = {
    level,
    base: { process: name, pid: process.pid },
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: stdTimeFunctions.isoTime,
    redact: { paths: SECRET_FIELDS, censor: "[redacted]" },
  };
  // When the reader has ended or the disk is full, the stream emits an error. Without a listener the error would end the process.
  process.stdout.on("error", () => undefined);
  return pino(settings, { write: writeLine });
}

/** Drops the line when too much waits for the reader of standard output, so that a slow reader does not stop the device. */
function writeLine(line: string): void {
  if (process.stdout.writableLength < clientLimits.logWaitingBytes) process.stdout.write(line);
}
