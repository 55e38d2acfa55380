/**
 * Delivers outbox rows. The rows of one key are delivered one after another, different keys side by side. A station gets its
 * description first, because it accepts nothing before.
 *
 *   idle ── a poll finds rows, or a flush ──► running ── all delivered ──► idle (forgotten)
 *     ▲                                          │
 *     └──────── pause over, or a flush ◄── waiting ◄┘ a row could not be delivered
 */
import type { Bus } from "../bus/connection.ts";
import { requestHeaders } from "../bus/deadline.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import type { PublishedIssueEvent } from "../bus/messages/issues.ts";
import type { PublishedRoboticsEvent } from "../bus/messages/robotics-events.ts";
import { failuresOf } from "../bus/outage.ts";
import { isStationUnknown, NotRestoredError, RefusedError } from "../bus/refusals.ts";
import { askStation } from "../bus/station-client.ts";
import { CREDENTIALS, ISSUE_EVENTS, ROBOTICS_EVENTS, SESSIONS, SWITCHES } from "../bus/streams.ts";
import { issueEventSubject, roboticsEventSubject } from "../bus/subjects.ts";
import { forRequest } from "../runtime/log.ts";
import { deleteEntry, putOnce, setSwitch } from "./buckets.ts";
import type { RelayDeps } from "./deps.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { lostOf } from "./recovery/lost-station.ts";
import {
  type DeliveredRows,
  isStationRestored,
  listPendingRows,
  markDelivered,
  type PendingRow,
} from "./sql/outbox.ts";

/** Where a row was stored, or why its receiver refused it for good. */
type Delivery =
  | { readonly stream: string; readonly sequence: number; readonly failedReason: null }
  | { readonly stream: null; readonly sequence: null; readonly failedReason: string };

const stored = (stream: string, sequence: number): Delivery => ({ stream, sequence, failedReason: null });
const refused = (failedReason: string): Delivery => ({ stream: null, sequence: null, failedReason });

/**
 * Delivers a row. Safe to repeat: a station's command carries the row's id as its command id, entries of buckets are put
 * once, and a kill switch takes a higher revision only. Throws when it is not known to be delivered; then it must be tried again.
 */
async function deliverRow(deps: Pick<RelayDeps, "bus" | "logs" | "sql">, row: PendingRow): Promise<Delivery> {
  const { bus } = deps;
  switch (row.kind) {
    case "station_command":
      return await commandStation(deps, row);
    case "credential_put":
      return stored(`KV_${CREDENTIALS.name}`, await putOnce(bus, CREDENTIALS, row.hash, row.entry));
    case "credential_delete":
      return stored(`KV_${CREDENTIALS.name}`, await deleteEntry(bus, CREDENTIALS, row.hash));
    case "session_put":
      return stored(`KV_${SESSIONS.name}`, await putOnce(bus, SESSIONS, row.hash, row.entry));
    case "session_delete":
      return stored(`KV_${SESSIONS.name}`, await deleteEntry(bus, SESSIONS, row.hash));
    case "switch_set":
      return stored(`KV_${SWITCHES.name}`, (await setSwitch(bus, row.entry)).sequence);
    case "robotics_event":
      return stored(ROBOTICS_EVENTS.name, await publishRoboticsEvent(bus, row));
    case "issue_event":
      return stored(ISSUE_EVENTS.name, await publishIssueEvent(bus, row));
  }
}

async function commandStation(
  deps: Pick<RelayDeps, "bus" | "logs" | "sql">,
  row: Extract<PendingRow, { readonly kind: "station_command" }>,
): Promise<Delivery> {
  const { bus, logs, sql } = deps;
  const { stationId, actor } = row;
  const lost = row.command.type === "station_put" ? (row.command.lost ?? (await lostOf(deps, stationId))) : undefined;
  const command = lost === undefined ? row.command : { ...row.command, lost };
  const request = { commandId: `outbox:${row.outboxId}`, actor, command };
  const ask = () => askStation(bus.nc, stationId, request, { timeoutMs: RELAY_LIMITS.stationTimeoutMs });
  try {
    let { reply, sequence } = await ask();
    if (isStationUnknown(reply)) {
      // The bus has lost the station. What the recovery returns to it may be older than this row, which must follow. The relay
      // asks again after the check, because the recovery may have ended in between.
      const isRestored = await isStationRestored(sql, row.key);
      ({ reply, sequence } = await ask());
      if (!isRestored && isStationUnknown(reply)) throw new NotRestoredError();
    }
    return reply.ok ? stored(logs.of(stationId).name, sequence) : refused(reply.code);
  } catch (error) {
    // A command that a host does not understand stays invalid, and must not block the rows behind it.
    if (error instanceof RefusedError && error.refusal.code === "invalid_request") return refused("invalid_request");
    throw error;
  }
}

/**
 * Publishes an event for the webhook signer and returns its place in the stream. The row's id names the event: published
 * again after a lost answer, it is stored once, because the server drops repeated ids, and the webhook signer counts it once.
 * Throws when it is not known to be stored.
 */
export async function publishRoboticsEvent(
  { js }: Pick<Bus, "js">,
  { outboxId, event }: Extract<PendingRow, { readonly kind: "robotics_event" }>,
): Promise<number> {
  const published: PublishedRoboticsEvent = { eventId: outboxId, event };
  const ack = await js.publish(roboticsEventSubject(event.filialId), JSON.stringify(published), {
    msgID: `outbox:${outboxId}`,
    headers: requestHeaders(),
    timeout: RELAY_LIMITS.streamTimeoutMs,
  });
  return ack.seq;
}

/** The same for the readers of issue events. */
export async function publishIssueEvent(
  { js }: Pick<Bus, "js">,
  { outboxId, event }: Extract<PendingRow, { readonly kind: "issue_event" }>,
): Promise<number> {
  const published: PublishedIssueEvent = { eventId: outboxId, event };
  const ack = await js.publish(issueEventSubject(event.organizationId), JSON.stringify(published), {
    msgID: `outbox:${outboxId}`,
    timeout: RELAY_LIMITS.streamTimeoutMs,
  });
  return ack.seq;
}

/** How far each replica must have come to show these rows. What a receiver has refused is never shown. */
export function barrierOf(rows: readonly DeliveredRows[]): Barrier {
  const positions: Record<string, number> = {};
  let isRefused = false;
  for (const { kind, stream, sequence } of rows) {
    // No replica shows an event: readers of events read the stream.
    if (kind === "robotics_event" || kind === "issue_event") continue;
    if (stream === null || sequence === null) isRefused = true;
    else positions[stream] = Math.max(positions[stream] ?? 0, sequence);
  }
  return isRefused ? { positions, isUndelivered: true } : { positions };
}

/** A key that has work. The relay forgets a key without work, so the outstanding rows bound the number of keys. */
interface KeyState {
  /** The run under way. */
  running: Promise<boolean> | undefined;
  /** The run after it, which reads rows that were committed since the first began; flushes share it. */
  next: Promise<boolean> | undefined;
  retryPauseMs: number;
  /** Of the request that wrote the row that this run delivers or has delivered last. */
  requestId: string | undefined;
  /** By the monotonic clock: a clock that is set back must not delay a revocation. 0 means no pause. */
  retryAtMs: number;
}

export class KeyDeliverer {
  readonly #deps: RelayDeps;
  readonly #isLeader: () => boolean;
  readonly #keys = new Map<string, KeyState>();
  readonly #busy = { station: 0, bucket: 0 };

  /** `isLeader` is false as soon as this relay no longer is the one that delivers. */
  constructor(deps: RelayDeps, isLeader: () => boolean) {
    this.#deps = deps;
    this.#isLeader = isLeader;
  }

  /** Whether the poll may start this key now: it is not running, not pausing, and its kind has room. */
  canStart(key: string, nowMs: number): boolean {
    const state = this.#keys.get(key);
    if (state?.running !== undefined || (state !== undefined && state.retryAtMs > nowMs)) return false;
    return laneOf(key) === "station"
      ? this.#busy.station < RELAY_LIMITS.stationKeysAtOnce
      : this.#busy.bucket < RELAY_LIMITS.bucketKeysAtOnce;
  }

  /**
   * Delivers what the key has outstanding, including every row committed before this call. Resolves to whether all of it
   * is delivered; never rejects. Ends a pause of the key, because a caller waits for it now.
   */
  async deliver(key: string): Promise<boolean> {
    const state = this.#keys.get(key) ?? {
      running: undefined,
      next: undefined,
      requestId: undefined,
      retryPauseMs: 0,
      retryAtMs: 0,
    };
    this.#keys.set(key, state);
    if (state.running === undefined) return this.#start(key, state);
    // The run under way may have read before the caller's rows were there.
    state.next ??= state.running.then(() => this.#start(key, state));
    return state.next;
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    for (const state of this.#keys.values()) await (state.next ?? state.running);
  }

  #start(key: string, state: KeyState): Promise<boolean> {
    state.next = undefined;
    state.running = this.#run(key, state).finally(() => {
      state.running = undefined;
      if (state.next === undefined && state.retryAtMs === 0) this.#keys.delete(key);
    });
    return state.running;
  }

  async #run(key: string, state: KeyState): Promise<boolean> {
    const lane = laneOf(key);
    this.#busy[lane] += 1;
    state.requestId = undefined;
    try {
      const isDone = await this.#deliverAll(key, state);
      state.retryPauseMs = 0;
      state.retryAtMs = 0;
      return isDone;
    } catch (error) {
      const { retryPauseMs, longestRetryPauseMs } = RELAY_LIMITS;
      state.retryPauseMs = Math.min(state.retryPauseMs * 2 || retryPauseMs, longestRetryPauseMs);
      state.retryAtMs = performance.now() + state.retryPauseMs;
      const failures = failuresOf(this.#deps.log, "the relay could not deliver an outbox key and will retry it");
      const facts = { key, retryInMs: state.retryPauseMs };
      forRequest(state.requestId, () => failures.failed(error, facts));
      return false;
    } finally {
      this.#busy[lane] -= 1;
    }
  }

  /** False when this relay no longer is the one that delivers. */
  async #deliverAll(key: string, state: KeyState): Promise<boolean> {
    for (;;) {
      const rows = await listPendingRows(this.#deps.sql, key, RELAY_LIMITS.rowsPerRead);
      for (const row of rows) {
        if (!this.#isLeader()) return false;
        state.requestId = row.requestId;
        await forRequest(row.requestId, () => this.#deliverOne(key, row));
      }
      // Rows that were committed since are delivered by their writer's flush, or by the next poll.
      if (rows.length < RELAY_LIMITS.rowsPerRead) return true;
    }
  }

  async #deliverOne(key: string, row: PendingRow): Promise<void> {
    const { sql, log, metrics } = this.#deps;
    const { kind, outboxId } = row;
    const startedAtMs = performance.now();
    const delivery = await deliverRow(this.#deps, row).catch((error: unknown) => {
      metrics.delivered(kind, "failed");
      throw error;
    });
    await markDelivered(sql, outboxId, delivery);
    metrics.delivered(kind, delivery.failedReason === null ? "delivered" : "refused");
    const facts = { key, outboxId, kind, ...delivery, tookMs: Math.round(performance.now() - startedAtMs) };
    if (delivery.failedReason === null) log.debug(facts, "the relay delivered an outbox row");
    else log.error(facts, "the receiver of an outbox row refused it for good");
  }
}

function laneOf(key: string): "station" | "bucket" {
  return key.startsWith("station.") ? "station" : "bucket";
}
