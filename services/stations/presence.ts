/**
 * Which devices of a partition are being heard. Heartbeats stay in memory here (and in LIVENESS); only a change between
 * online and offline becomes a command (design §3). The time of the bus counts for heartbeats, so that no
 * machine's clock can make a device silent.
 *
 *   heard, not online ──► device_seen       online, silent for too long ──► device_silent
 */
import { findDevice, type StationState } from "../../machines/station/state.ts";
import type { BusClock } from "../bus/bus-clock.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { LocalCommands } from "./mailboxes.ts";
import type { HostCommand } from "./work.ts";

interface Device {
  readonly stationId: number;
  heardAtMs: number;
  /** As committed. While false the commit that says so is on its way. */
  isOnline: boolean;
}

export class Presence {
  readonly #localCommands: LocalCommands;
  readonly #silenceMs: number;
  readonly #clock: Pick<BusClock, "nowMs">;
  readonly #devices = new Map<number, Device>();
  readonly #silences = new DeadlineQueue();
  /** While the log is scanned: devices that were heard, of which it is not known yet whether they are online. */
  #early: Map<number, { readonly stationId: number; readonly atMs: number }> | undefined = new Map();
  /** Before the stored heartbeats have been read nobody is silent: the host simply has not listened. */
  #mayJudge = false;
  #isClosed = false;

  constructor(deps: {
    readonly localCommands: LocalCommands;
    readonly deviceSilenceMs: number;
    readonly clock: Pick<BusClock, "nowMs">;
  }) {
    this.#clock = deps.clock;
    this.#localCommands = deps.localCommands;
    this.#silenceMs = deps.deviceSilenceMs;
  }

  heard(stationId: number, deviceId: number, atMs: number): void {
    const device = this.#devices.get(deviceId);
    if (device !== undefined) {
      if (atMs > device.heardAtMs) device.heardAtMs = atMs;
    } else if (this.#early !== undefined) {
      const earlier = this.#early.get(deviceId)?.atMs ?? 0;
      this.#early.set(deviceId, { stationId, atMs: Math.max(atMs, earlier) });
    } else {
      this.#arrive(stationId, deviceId, atMs);
    }
  }

  /** A heartbeat that was stored before this host listened; one that is too old proves nothing. */
  heardBefore(stationId: number, deviceId: number, storedAtMs: number): void {
    const nowMs = this.#clock.nowMs();
    const atMs = Math.min(storedAtMs, nowMs);
    if (storedAtMs + this.#silenceMs > nowMs) this.heard(stationId, deviceId, atMs);
    const device = this.#devices.get(deviceId);
    if (device?.isOnline !== true) return;
    device.heardAtMs = Math.max(device.heardAtMs, atMs);
    this.#silences.set(deviceId, device.heardAtMs + this.#silenceMs);
  }

  observe(stationId: number, state: StationState): void {
    for (const { deviceId, liveness } of state.devices) {
      const device = this.#devices.get(deviceId);
      if (liveness.state === "online") {
        if (device?.isOnline !== true)
          this.#setOnline(stationId, deviceId, device?.heardAtMs ?? liveness.lastSeenAtMs ?? 0);
      } else if (device?.isOnline === true) {
        this.#forget(deviceId);
        // Heard after the silence was judged and before its commit came back: that heartbeat must not be lost with it.
        if (device.heardAtMs + this.#silenceMs > this.#clock.nowMs()) this.heard(stationId, deviceId, device.heardAtMs);
      }
    }
  }

  /** From the scan of the log: devices that are online as committed; when they were heard is not known yet. */
  noteOnline(stationId: number, deviceIds: readonly number[]): void {
    for (const deviceId of deviceIds) {
      const heardAtMs = this.#devices.get(deviceId)?.heardAtMs ?? this.#early?.get(deviceId)?.atMs ?? 0;
      this.#setOnline(stationId, deviceId, heardAtMs);
    }
  }

  finishScan(): void {
    const early = this.#early;
    this.#early = undefined;
    for (const [deviceId, { stationId, atMs }] of early ?? []) this.heard(stationId, deviceId, atMs);
  }

  /** Suspends judgement while heartbeats may have been missed, and resumes it when the stored ones have been read. */
  setMayJudge(mayJudge: boolean): void {
    this.#mayJudge = mayJudge;
  }

  tick(nowMs: number): void {
    if (!this.#mayJudge) return;
    for (const deviceId of this.#silences.takeDue(nowMs, STATION_LIMITS.dueAtOnce)) {
      const device = this.#devices.get(deviceId);
      if (device?.isOnline !== true) continue;
      const dueMs = device.heardAtMs + this.#silenceMs;
      if (dueMs > nowMs) this.#silences.set(deviceId, dueMs);
      else this.#depart(deviceId, device);
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  #setOnline(stationId: number, deviceId: number, heardAtMs: number): void {
    this.#devices.set(deviceId, { stationId, heardAtMs, isOnline: true });
    this.#silences.set(deviceId, Math.max(heardAtMs + this.#silenceMs, this.#clock.nowMs()));
  }

  #forget(deviceId: number): void {
    this.#devices.delete(deviceId);
    this.#silences.delete(deviceId);
  }

  #arrive(stationId: number, deviceId: number, atMs: number): void {
    const device: Device = { stationId, heardAtMs: atMs, isOnline: false };
    this.#devices.set(deviceId, device);
    this.#localCommands.submit({
      stationId,
      commandId: `seen:${deviceId}:${atMs}`,
      isVoid: () => this.#isClosed,
      command: () => ({ type: "device_seen", deviceId, seenAtMs: device.heardAtMs }),
      done: (answer) => {
        // A commit has replaced the entry by one that is online; otherwise the device is unknown, or nothing was committed.
        if (this.#devices.get(deviceId) !== device) return;
        this.#devices.delete(deviceId);
        if (answer === undefined) this.#retry(() => this.heard(stationId, deviceId, device.heardAtMs));
      },
    });
  }

  #depart(deviceId: number, device: Device): void {
    const command = (state: StationState): HostCommand | undefined => {
      const committed = findDevice(state, deviceId);
      if (committed === undefined || device.heardAtMs + this.#silenceMs > this.#clock.nowMs()) return undefined;
      const lastSeenAtMs = Math.max(device.heardAtMs, committed.liveness.lastSeenAtMs ?? 0);
      return { type: "device_silent", deviceId, lastSeenAtMs };
    };
    this.#localCommands.submit({
      stationId: device.stationId,
      commandId: `silent:${deviceId}:${device.heardAtMs}`,
      isVoid: () => this.#isClosed,
      command,
      done: (answer) => {
        if (this.#devices.get(deviceId) !== device) return;
        const wasHeard = device.heardAtMs + this.#silenceMs > this.#clock.nowMs();
        if (answer === undefined || wasHeard)
          this.#silences.set(deviceId, this.#clock.nowMs() + STATION_LIMITS.retryMs);
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
