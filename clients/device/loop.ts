/**
 * The life of a device: it attaches, sends heartbeats at their interval, beside them does one turn of its work after
 * another, and answers every failure calmly. The pace of the transport is the request budget of both.
 */
import { clientLimits } from "../limits.ts";
import { type AttachDeps, attach, type DeviceLog, needsCode } from "./attach.ts";
import type { DeviceClient, DeviceSnapshot } from "./client.ts";
import { createBackoff, pause, waitMs } from "./pace.ts";
import { failureReason, isRetryable, ServiceError } from "./transport.ts";

/** What the turns of a device's work may use. */
export interface TurnDeps {
  readonly client: DeviceClient;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
  readonly checkIn: CheckIn;
}

export interface DeviceKind {
  /** Also the log's name and, without CREDENTIAL_FILE, the credential file's. */
  readonly name: string;
  /** Makes the turn of the device's work; each turn returns how long to wait until the next. */
  readonly createTurn: (deps: TurnDeps) => () => Promise<number>;
  /** Whether a device of this name sends no heartbeats. */
  readonly isSilent: (name: string) => boolean;
}

interface DeviceRun extends AttachDeps {
  /** Called once, when the device is attached. */
  readonly onReady: () => void;
}

/** Attaches one device and does its work until the signal is aborted. Throws `DeviceStopped` when it cannot continue. */
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

/** How a device reports that it is there, and learns from the answer what its owner calls it now. */
export type CheckIn = ReturnType<typeof createCheckIn>;

function createCheckIn(deps: {
  readonly client: DeviceClient;
  readonly firstName: string;
  readonly isSilent: DeviceKind["isSilent"];
}) {
  const { client, isSilent } = deps;
  const startedAtMs = performance.now();
  let name = deps.firstName;
  let quietUntilMs = 0;
  return {
    /** The newest name that the service has reported. */
    name: () => name,
    /** One heartbeat. When the name asks for silence: one read of the device's snapshot, which makes no device live. */
    async once(signal: AbortSignal): Promise<DeviceSnapshot> {
      const uptime = Math.round((performance.now() - startedAtMs) / 1_000);
      const snapshot = isSilent(name) ? await client.me(signal) : await client.heartbeat({ uptime_s: uptime }, signal);
      name = snapshot.name;
      return snapshot;
    },
    /** From now on the device plays offline for that long: no heartbeat is due. */
    beQuiet(forMs: number): void {
      quietUntilMs = performance.now() + forMs;
    },
    /** How long it still does. */
    quietMs: () => Math.max(0, quietUntilMs - performance.now()),
  };
}

interface DeviceLoopDeps {
  readonly checkIn: CheckIn;
  readonly log: DeviceLog;
  readonly signal: AbortSignal;
  /** True when a heartbeat was accepted just before. */
  readonly isLive: boolean;
  /** Called once, after the first accepted check-in: from then on the device counts as live, unless its name asks for silence. */
  readonly onReady: () => void;
  readonly turn: () => Promise<number>;
  /** Another interval than that of `clientLimits`; only in tests. */
  readonly heartbeatEveryMs?: number;
}

/** Runs until the signal is aborted. Throws `DeviceStopped` when the credential is revoked. */
export async function runDeviceLoop(deps: DeviceLoopDeps): Promise<void> {
  const ended = new AbortController();
  const signal = AbortSignal.any([deps.signal, ended.signal]);
  const failures = createFailureLog(deps.log);
  const live = Promise.withResolvers<void>();
  const onLive = (): void => {
    deps.onReady();
    live.resolve();
  };
  if (deps.isLive) onLive();
  signal.addEventListener("abort", () => live.resolve(), { once: true });
  const work = live.promise.then(() => repeatTurns(deps.turn, failures, signal));
  const heartbeats = sendHeartbeats(deps, failures, signal, onLive);
  // When one ends with an error, the other may be in a long pause, which nothing has to wait for.
  work.catch(() => undefined);
  heartbeats.catch(() => undefined);
  try {
    await Promise.all([heartbeats, work]);
  } finally {
    ended.abort();
  }
}

/** Never more than an interval apart: a device whose other requests fail must not go offline for that. */
async function sendHeartbeats(
  { checkIn, isLive, heartbeatEveryMs = clientLimits.heartbeatEveryMs }: DeviceLoopDeps,
  failures: FailureLog,
  signal: AbortSignal,
  onLive: () => void,
): Promise<void> {
  const backoff = newBackoff();
  let wasAccepted = isLive;
  if (isLive) await pause(heartbeatEveryMs, signal);
  while (!signal.aborted) {
    const quietMs = checkIn.quietMs();
    if (quietMs > 0) {
      await pause(quietMs, signal);
      continue;
    }
    try {
      await checkIn.once(signal);
      backoff.reset();
      failures.over("heartbeats");
      if (!wasAccepted) onLive();
      wasAccepted = true;
      await pause(heartbeatEveryMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      await pause(
        failures.begin("heartbeats", error, () => Math.min(backoff.nextMs(), heartbeatEveryMs)),
        signal,
      );
    }
  }
}

async function repeatTurns(turn: () => Promise<number>, failures: FailureLog, signal: AbortSignal): Promise<void> {
  const backoff = newBackoff();
  while (!signal.aborted) {
    try {
      const waitForMs = await turn();
      backoff.reset();
      failures.over("work");
      await pause(waitForMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      await pause(
        failures.begin("work", error, () => backoff.nextMs()),
        signal,
      );
    }
  }
}

const newBackoff = (): ReturnType<typeof createBackoff> =>
  createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.backoffMaxMs });

type Source = "heartbeats" | "work";

interface FailureLog {
  /** Logs a failure once for each reason, and returns how long to wait. Throws a failure that ends the device. */
  begin(source: Source, error: unknown, backoffMs: () => number): number;
  over(source: Source): void;
}

function createFailureLog(log: DeviceLog): FailureLog {
  const reasons = new Map<Source, string>();
  return {
    begin(source, error, backoffMs) {
      if (error instanceof ServiceError && error.httpStatus === 401) throw needsCode(true);
      // Standing can come back, so a blocked device keeps its heartbeat and checks again (design §4, "blocked device").
      const isBlocked = error instanceof ServiceError && error.httpStatus === 403;
      if (!isBlocked && !isRetryable(error)) throw error;
      const reason = failureReason(error);
      const isLogged = [...reasons.values()].includes(reason);
      reasons.set(source, reason);
      const message = error instanceof Error ? error.message : reason;
      if (!isLogged) log.warn({ reason }, isBlocked ? `blocked: ${message}` : message);
      return isBlocked ? clientLimits.blockedPollMs : waitMs(error, backoffMs());
    },
    over(source) {
      if (reasons.delete(source) && reasons.size === 0) log.info({}, "the service accepts requests again");
    },
  };
}
