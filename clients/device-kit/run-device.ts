/** Runs both kinds of device: the storage, the requests that they share, their start and their end. */
import { createDeviceClient, type DeviceClient } from "./client.ts";
import type { DeviceEffect, DeviceEvent, DeviceState } from "./device-machine.ts";
import { KIT_LIMITS } from "./limits.ts";
import { hostPlatform, type Platform } from "./platform.ts";
import { type DeviceStorage, readRecord } from "./record.ts";
import { type Running, runMachine } from "./run-machine.ts";
import { telemetryOf } from "./telemetry.ts";
import { createTransport, type Failure, type Result } from "./transport.ts";

export const KIT_VERSION = "device-kit/1.0.0";

export interface DeviceOptions<S> {
  /** The address of the service, without a path. */
  readonly baseUrl: string;
  readonly storage: DeviceStorage;
  /** The one-time code, needed at the first start and after the owner has reset the device. */
  readonly code?: string | undefined;
  /**
   * Additional telemetry for the heartbeat, for example the app's version, battery and network. It is left out when it throws,
   * when the whole telemetry would be larger than 4 KiB of JSON, or when it has more than 8 levels.
   */
  readonly summary?: () => object;
  /** Called after each step with the device's state, for its screen and its log. */
  readonly onState?: (state: S) => void;
  /** Another clock and network, in tests. */
  readonly platform?: Platform;
}

export interface Device<S> {
  state(): S;
  /** The time since the last event, for a watchdog that restarts a device without events for minutes. */
  quietMs(): number;
  /** Gives the device a new code, after `needs_code`. */
  enroll(code: string): void;
  /** The device API, at the device's pace and with its credential. */
  readonly client: DeviceClient;
  /** Ends everything at once. The stored record stays. */
  stop(): void;
}

type SharedEffect = Exclude<DeviceEffect, { type: "timer" }>;
type Shared = { readonly [T in SharedEffect["type"]]: (effect: Extract<SharedEffect, { type: T }>) => void };

/** The parts of one kind of device: its machine and its effects. */
interface DeviceKind<S, E, F> {
  readonly first: S;
  readonly step: (
    state: S,
    event: E | DeviceEvent,
    platform: Platform,
  ) => { readonly state: S; readonly effects: readonly (F | DeviceEffect)[] };
  /** Performs an effect that only this kind has. */
  readonly perform: (effect: F, requests: Requests<E>) => void;
}
export interface Requests<E> {
  readonly client: DeviceClient;
  readonly platform: Platform;
  readonly dispatch: (event: E | DeviceEvent) => void;
  /** Calls a function of the integrator. */
  callBack(callback: () => void): void;
  /** Sends a request. Its end is an event, unless the requests were cancelled meanwhile. */
  send<T>(
    request: Promise<Result<T>>,
    onAnswer: (answer: T) => E | DeviceEvent,
    onFailure: (failure: Failure) => E | DeviceEvent,
  ): void;
}

export function runDevice<S extends DeviceState, E, F extends { readonly type: string }>(
  options: DeviceOptions<S>,
  kind: DeviceKind<S, E, F>,
): Device<S> {
  const { storage, platform = hostPlatform() } = options;
  const transport = createTransport({ baseUrl: options.baseUrl, platform });
  const client = createDeviceClient(transport);
  const startedAtMs = platform.nowMs();
  let state = kind.first;
  let eventAtMs = startedAtMs;
  /** Counts the cancellations: the answer to a request that was sent before a cancellation is no event. */
  let cancellations = 0;
  const dispatch = (event: E | DeviceEvent): void => running.dispatch(event);
  const requests: Requests<E> = {
    client,
    platform,
    dispatch,
    send(request, onAnswer, onFailure) {
      const sentAfter = cancellations;
      const end = async (): Promise<void> => {
        const result = await request;
        if (sentAfter === cancellations) dispatch(result.ok ? onAnswer(result) : onFailure(result.failure));
      };
      void end();
    },
    callBack(callback) {
      try {
        callback();
      } catch (error) {
        // Throws outside of the kit: the integrator's defect becomes visible, and the device continues.
        platform.setTimeout(() => {
          throw error;
        }, 0);
      }
    },
  };
  const write = createWriter(storage, platform, dispatch, () => running.isStopped());
  const shared: Shared = {
    store({ record, revision }) {
      client.use(record.credential);
      write(revision, JSON.stringify(record));
    },
    enroll: ({ code }) =>
      requests.send(
        client.enroll(code),
        ({ value, isEffective }) => ({ type: "enrolled", ...value, effective: isEffective }),
        (failure) => ({ type: "enroll_failed", failure }),
      ),
    heartbeat: () =>
      requests.send(
        client.heartbeat(telemetryOf(options.summary, summaryOf(state, platform.nowMs() - startedAtMs))),
        ({ value }) => ({ type: "heartbeat_answered", device: value }),
        (failure) => ({ type: "heartbeat_failed", failure }),
      ),
    cancel_requests() {
      cancellations += 1;
      transport.abort();
    },
  };
  const running: Running<E | DeviceEvent> = runMachine<S, E | DeviceEvent, F | DeviceEffect>({
    first: kind.first,
    platform,
    step: (before, event) => {
      eventAtMs = platform.nowMs();
      const taken = kind.step(before, event, platform);
      state = taken.state;
      return taken;
    },
    perform(effect) {
      const perform = shared[effect.type as keyof Shared] as ((effect: unknown) => void) | undefined;
      if (perform === undefined) kind.perform(effect as F, requests);
      else perform(effect);
    },
    onState: (next) => requests.callBack(() => options.onState?.(next)),
  });
  const start = async (): Promise<void> => {
    const record = await storage.read().then(readRecord, () => "damaged" as const);
    if (record !== null && record !== "damaged") client.use(record.credential);
    dispatch({ type: "start", record, code: options.code ?? null });
  };
  void start();
  return {
    state: () => state,
    quietMs: () => platform.nowMs() - eventAtMs,
    enroll: (code) => dispatch({ type: "code", code }),
    client,
    stop() {
      running.stop();
      transport.abort();
    },
  };
}

/** The telemetry that the service's operators see. */
function summaryOf({ record, problem }: DeviceState, uptimeMs: number): object {
  return {
    kit: KIT_VERSION,
    uptime_s: Math.round(uptimeMs / 1_000),
    queue_length: record?.reports.length ?? 0,
    last_error: problem === null ? "" : `${problem.where}: ${problem.code.slice(0, KIT_LIMITS.errorCodeMaxChars)}`,
  };
}

/**
 * Writes one record after the other. A write that does not end in time counts as failed. The next write still waits for its
 * end, because a late write must not replace a newer record.
 */
function createWriter(
  storage: DeviceStorage,
  platform: Platform,
  dispatch: (event: DeviceEvent) => void,
  isStopped: () => boolean,
): (revision: number, text: string) => void {
  const settle = async (revision: number, written: Promise<void>): Promise<void> => {
    let timer: unknown;
    const late = new Promise<never>((_resolve, reject) => {
      timer = platform.setTimeout(() => reject(new Error("The storage does not answer.")), KIT_LIMITS.storageMs);
    });
    try {
      await Promise.race([written, late]);
      dispatch({ type: "stored", revision });
    } catch (error) {
      const detail = error instanceof Error ? error.message : "The storage failed.";
      dispatch({ type: "store_failed", revision, detail });
    } finally {
      platform.clearTimeout(timer as never);
    }
  };
  let last = Promise.resolve();
  return (revision, text) => {
    const written = last.then(() => (isStopped() ? undefined : storage.write(text)));
    last = written.catch(() => undefined);
    void settle(revision, written);
  };
}
