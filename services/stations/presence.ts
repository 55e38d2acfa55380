/**
 * Which devices of a partition send heartbeats. Heartbeats stay in memory here (and in LIVENESS); only a change between
 * online and offline becomes a command. The host uses the time of the bus, so that no wrong clock can make a
 * device silent. After the clock was set back, earlier times are ahead of it. No device waits until it has come so far again.
 *
 *   a heartbeat, not online ──► device_seen       online, silent for too long, none stored ──► device_silent
 */
import { SET_BACK_MS } from "../../machines/settings.ts";
import { findDevice, type StationState } from "../../machines/station/state.ts";
import type { BusClock } from "../bus/bus-clock.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { LocalCommands } from "./mailboxes.ts";
import type { StoredHeartbeats } from "./stored-heartbeats.ts";
import type { HostCommand } from "./work.ts";

interface Device {
  readonly stationId: number;
  heartbeatAtMs: number;
  /** As committed. While false, the commit that sets it online is under way. */
  isOnline: boolean;
}

export class Presence {
  readonly #localCommands: LocalCommands;
  readonly #silenceMs: number;
  readonly #clock: Pick<BusClock, "nowMs">;
  readonly #storedHeartbeats: Pick<StoredHeartbeats, "newestAtMs">;
  readonly #devices = new Map<number, Device>();
  readonly #silences = new DeadlineQueue();
  /** During the scan of the log: heartbeats of devices whose committed liveness is not known yet. */
  #early: Map<number, { readonly stationId: number; readonly atMs: number }> | undefined = new Map();
  /** Before the stored heartbeats are read, no device counts as silent: this host has missed heartbeats. */
  #detectsSilence = false;
  /** The time of the last check for due silences. */
  #checkedAtMs: number;
  #isClosed = false;

  constructor(deps: {
    readonly localCommands: LocalCommands;
    readonly deviceSilenceMs: number;
    readonly clock: Pick<BusClock, "nowMs">;
    readonly storedHeartbeats: Pick<StoredHeartbeats, "newestAtMs">;
  }) {
    this.#clock = deps.clock;
    this.#checkedAtMs = deps.clock.nowMs();
    this.#storedHeartbeats = deps.storedHeartbeats;
    this.#localCommands = deps.localCommands;
    this.#silenceMs = deps.deviceSilenceMs;
  }

  noteHeartbeat(stationId: number, deviceId: number, atMs: number): void {
    const device = this.#devices.get(deviceId);
    if (device !== undefined) {
      if (atMs > device.heartbeatAtMs) device.heartbeatAtMs = atMs;
    } else if (this.#early !== undefined) {
      const earlier = this.#early.get(deviceId)?.atMs ?? 0;
      this.#early.set(deviceId, { stationId, atMs: Math.max(atMs, earlier) });
    } else {
      this.#reportSeen(stationId, deviceId, atMs);
    }
  }

  /** Notes a heartbeat that was stored before this host listened; one that is too old, or may be, does not make a device online. */
  noteStoredHeartbeat(stationId: number, deviceId: number, storedAtMs: number): void {
    const nowMs = this.#clock.nowMs();
    const atMs = Math.min(storedAtMs, nowMs);
    const isNew = storedAtMs + this.#silenceMs > nowMs && !isBeforeSetBack(storedAtMs, nowMs);
    if (isNew) this.noteHeartbeat(stationId, deviceId, atMs);
    const device = this.#devices.get(deviceId);
    if (device?.isOnline !== true) return;
    device.heartbeatAtMs = Math.max(device.heartbeatAtMs, atMs);
    this.#silences.set(deviceId, device.heartbeatAtMs + this.#silenceMs);
  }

  observe(stationId: number, state: StationState): void {
    for (const { deviceId, liveness } of state.devices) {
      const device = this.#devices.get(deviceId);
      if (liveness.state === "online") {
        if (device?.isOnline !== true)
          this.#setOnline(stationId, deviceId, device?.heartbeatAtMs ?? liveness.lastSeenAtMs ?? 0);
      } else if (device?.isOnline === true) {
        this.#forget(deviceId);
        // A heartbeat that came after the silence was detected and before its commit was stored must not be lost with it.
        if (device.heartbeatAtMs + this.#silenceMs > this.#clock.nowMs())
          this.noteHeartbeat(stationId, deviceId, device.heartbeatAtMs);
      }
    }
  }

  /** From the scan of the log: devices that are online as committed. Their newest heartbeat is not known yet. */
  noteOnline(stationId: number, deviceIds: readonly number[]): void {
    for (const deviceId of deviceIds) {
      const heartbeatAtMs = this.#devices.get(deviceId)?.heartbeatAtMs ?? this.#early?.get(deviceId)?.atMs ?? 0;
      this.#setOnline(stationId, deviceId, heartbeatAtMs);
    }
  }

  finishScan(): void {
    const early = this.#early;
    this.#early = undefined;
    for (const [deviceId, { stationId, atMs }] of early ?? []) this.noteHeartbeat(stationId, deviceId, atMs);
  }

  /** Off while heartbeats may have been missed, on again when the stored ones have been read. */
  detectSilence(isOn: boolean): void {
    this.#detectsSilence = isOn;
  }

  isDue(nowMs: number): boolean {
    this.#noteTime(nowMs);
    return this.#detectsSilence && this.#silences.isDue(nowMs);
  }

  tick(nowMs: number): void {
    this.#noteTime(nowMs);
    if (!this.#detectsSilence) return;
    for (const deviceId of this.#silences.takeDue(nowMs, STATION_LIMITS.dueAtOnce)) {
      const device = this.#devices.get(deviceId);
      if (device?.isOnline !== true) continue;
      const dueMs = device.heartbeatAtMs + this.#silenceMs;
      if (dueMs > nowMs) this.#silences.set(deviceId, dueMs);
      else void this.#checkSilence(deviceId, device);
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  /** After the clock was set back, no heartbeat and no silence may wait until the clock has come so far again. */
  #noteTime(nowMs: number): void {
    if (isBeforeSetBack(this.#checkedAtMs, nowMs)) {
      for (const [deviceId, device] of this.#devices) {
        device.heartbeatAtMs = Math.min(device.heartbeatAtMs, nowMs);
        if (device.isOnline) this.#silences.set(deviceId, device.heartbeatAtMs + this.#silenceMs);
      }
    }
    this.#checkedAtMs = nowMs;
  }

  #setOnline(stationId: number, deviceId: number, seenAtMs: number): void {
    const nowMs = this.#clock.nowMs();
    const heartbeatAtMs = Math.min(seenAtMs, nowMs);
    this.#devices.set(deviceId, { stationId, heartbeatAtMs, isOnline: true });
    this.#silences.set(deviceId, Math.max(heartbeatAtMs + this.#silenceMs, nowMs));
  }

  #forget(deviceId: number): void {
    this.#devices.delete(deviceId);
    this.#silences.delete(deviceId);
  }

  #reportSeen(stationId: number, deviceId: number, atMs: number): void {
    const device: Device = { stationId, heartbeatAtMs: atMs, isOnline: false };
    this.#devices.set(deviceId, device);
    this.#localCommands.submit({
      stationId,
      commandId: `seen:${deviceId}:${atMs}`,
      isVoid: () => this.#isClosed,
      command: (state) => {
        const { lastSeenAtMs = null, sinceMs = null } = findDevice(state, deviceId)?.liveness ?? {};
        const committedAtMs = lastSeenAtMs ?? sinceMs ?? 0;
        // This heartbeat is newer than the committed one or the reset, although its time is earlier.
        const isAfterSetBack = isBeforeSetBack(committedAtMs, this.#clock.nowMs());
        return { type: "device_seen", deviceId, seenAtMs: isAfterSetBack ? committedAtMs + 1 : device.heartbeatAtMs };
      },
      done: (answer) => {
        // A commit has replaced the entry by one that is online. Otherwise the device is unknown, or nothing was committed.
        if (this.#devices.get(deviceId) !== device) return;
        this.#devices.delete(deviceId);
        if (answer === undefined) this.#retry(() => this.noteHeartbeat(stationId, deviceId, device.heartbeatAtMs));
      },
    });
  }

  /** A heartbeat that this host has missed may be stored. */
  async #checkSilence(deviceId: number, device: Device): Promise<void> {
    const storedAtMs = await this.#storedHeartbeats.newestAtMs(device.stationId, deviceId);
    if (this.#devices.get(deviceId) !== device || !device.isOnline) return;
    const nowMs = this.#clock.nowMs();
    if (storedAtMs !== undefined && !isBeforeSetBack(storedAtMs, nowMs))
      device.heartbeatAtMs = Math.max(device.heartbeatAtMs, Math.min(storedAtMs, nowMs));
    const dueMs = device.heartbeatAtMs + this.#silenceMs;
    if (dueMs > nowMs) this.#silences.set(deviceId, dueMs);
    else if (storedAtMs === undefined) this.#silences.set(deviceId, nowMs + STATION_LIMITS.retryMs);
    else this.#reportSilent(deviceId, device);
  }

  #reportSilent(deviceId: number, device: Device): void {
    const command = (state: StationState): HostCommand | undefined => {
      const committed = findDevice(state, deviceId);
      if (committed === undefined || device.heartbeatAtMs + this.#silenceMs > this.#clock.nowMs()) return undefined;
      const lastSeenAtMs = Math.max(device.heartbeatAtMs, committed.liveness.lastSeenAtMs ?? 0);
      return { type: "device_silent", deviceId, lastSeenAtMs };
    };
    this.#localCommands.submit({
      stationId: device.stationId,
      commandId: `silent:${deviceId}:${device.heartbeatAtMs}`,
      isVoid: () => this.#isClosed,
      command,
      done: (answer) => {
        if (this.#devices.get(deviceId) !== device) return;
        const isAlive = device.heartbeatAtMs + this.#silenceMs > this.#clock.nowMs();
        if (answer === undefined || isAlive) this.#silences.set(deviceId, this.#clock.nowMs() + STATION_LIMITS.retryMs);
        else this.#forget(deviceId);
      },
    });
  }

  #retry(again: () => void): void {
    setTimeout(() => {
      if (!this.#isClosed) again();
    }, STATION_LIMITS.retryMs);
  }
}

/** Whether the clock was set back after this time. */
function isBeforeSetBack(atMs: number, nowMs: number): boolean {
  return atMs > nowMs + SET_BACK_MS;
}
