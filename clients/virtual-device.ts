/** Runs one virtual device as a process: its settings, its log, its end, and one sentence when it cannot continue. */
import { type Logger, pino, stdTimeFunctions } from "pino";
import { z } from "zod";
import type { DeviceState } from "./device-kit/device-machine.ts";
import { type DeviceStorage, readRecord } from "./device-kit/record.ts";
import type { Device, DeviceOptions } from "./device-kit/run-device.ts";
import { fileStorage } from "./device-kit/storage/file.ts";
import { trustCertificate } from "./http/transport.ts";
import { clientLimits } from "./limits.ts";

/** A device that cannot continue by itself; `message` is one sentence for the person who set it up. */
class DeviceStopped extends Error {
  override readonly name = "DeviceStopped";
}

interface VirtualDevice {
  /** Also the name of the log and, without CREDENTIAL_FILE, of the credential file. */
  readonly name: string;
  /** Starts a device of the kit. The signal ends the device's waits outside the kit. */
  readonly start: (
    options: DeviceOptions<DeviceState>,
    deps: { readonly log: Logger; readonly signal: AbortSignal },
  ) => Device<DeviceState>;
  /** Whether the station can use the device. A parent process waits for this. */
  readonly isReady: (state: DeviceState) => boolean;
}

/**
 * Runs until SIGTERM, SIGINT or the end of the parent process. Sends a parent process `{ready: true}` once the device is
 * ready, or `{ready: false, code, message}` when it cannot continue.
 */
export function runKitDevice({ name, start, isReady }: VirtualDevice): Promise<void> {
  return runProcess(name, async ({ settings, log, onReady, signal }) => {
    const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
    const code = settings.ENROLLMENT_CODE || undefined;
    const file = settings.CREDENTIAL_FILE ?? `.data/${name}.json`;
    const report = createReporter({ log, isReady, onReady });
    const options = {
      baseUrl: settings.BASE_URL,
      storage: credentialFile(file, { code, log, onUnusable: reject }),
      code,
      onState(state: DeviceState) {
        const { phase, record, heartbeat, problem } = state;
        if (phase === "needs_code") reject(needsCode(record !== null || code !== undefined));
        else if (phase === "enrolled" && heartbeat === "off")
          reject(new DeviceStopped(problem?.detail ?? "The service refuses the heartbeats."));
        else report(state);
      },
    };
    const device = start(options, { log, signal });
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) resolve();
    try {
      await ended;
    } finally {
      device.stop();
    }
  });
}

/** The error of a device that has no valid credential. */
function needsCode(again: boolean): DeviceStopped {
  const because = again ? "The device's credential or code is no longer valid" : "The device is not enrolled yet";
  return new DeviceStopped(
    `${because}: issue ${again ? "a new" : "an"} enrollment code in the back office and start again with ENROLLMENT_CODE set to it.`,
  );
}

/** Checks the file. An unusable file ends the device with one sentence; with a code, a damaged file leads to a new enrollment. */
function credentialFile(
  path: string,
  deps: {
    readonly code: string | undefined;
    readonly log: Logger;
    readonly onUnusable: (stopped: DeviceStopped) => void;
  },
): DeviceStorage {
  const { code, log, onUnusable } = deps;
  const storage = fileStorage(path);
  const unusable = (why: string, cause?: unknown): void =>
    onUnusable(new DeviceStopped(`The credential file ${path} ${why}.`, { cause }));
  return {
    async read() {
      try {
        const text = await storage.read();
        if (readRecord(text) !== "damaged") return text;
        if (code === undefined) unusable("is damaged; delete it and enroll again");
        else log.warn({ file: path }, "the credential file is damaged");
        return text;
      } catch (error) {
        unusable("cannot be read", error);
        throw error;
      }
    },
    async write(text) {
      try {
        await storage.write(text);
      } catch (error) {
        unusable("cannot be written", error);
        throw error;
      }
    },
    remove: () => storage.remove(),
  };
}

/** Logs changes: that the device is ready, why it cannot work now, and that it continues. */
function createReporter(deps: {
  readonly log: Logger;
  readonly isReady: VirtualDevice["isReady"];
  readonly onReady: () => void;
}): (state: DeviceState) => void {
  const { log, isReady, onReady } = deps;
  let wasReady = false;
  let logged = "";
  return (state) => {
    // A blocked device is enrolled, and continues when the block ends. Its parent process does not wait for that.
    if (!wasReady && (isReady(state) || state.blockedReason !== "")) {
      wasReady = true;
      onReady();
    }
    const { reason, message } = hindrance(state, wasReady);
    if (reason === logged) return;
    if (reason !== "") log.warn({ reason }, message);
    else if (wasReady) log.info({}, "the service accepts requests again");
    logged = reason;
  };
}

/** Why the device cannot work now, as a code and a sentence; two empty texts when it can. */
function hindrance({ record, blockedReason, problem }: DeviceState, wasReady: boolean) {
  if (blockedReason !== "") return { reason: blockedReason, message: problem?.detail ?? blockedReason };
  // `credentialFile` reports problems of the file.
  if (problem === null || problem.where === "storage") return { reason: "", message: "" };
  const { code, detail } = problem;
  if (code === "no_answer") return { reason: "unreachable", message: wasReady ? detail : "waiting for the service" };
  if (code === "credential_invalid" && record?.accepted === false)
    return { reason: "not_effective", message: "waiting until the service knows the new credential" };
  return { reason: code, message: detail };
}

interface ProcessDeps {
  readonly settings: z.infer<typeof settingsSchema>;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Called once. */
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

/** Drops the line when too much output waits for its reader, so that a slow reader does not stop the device. */
function writeLine(line: string): void {
  if (process.stdout.writableLength < clientLimits.logWaitingBytes) process.stdout.write(line);
}
