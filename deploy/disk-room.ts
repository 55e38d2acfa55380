/**
 * Checks whether the disk of the data folder has room for a server to start, and describes a shortage to the operator. A
 * part that ended because the disk was full is started again when there is room, however long that takes: a lack of space
 * never counts as a crash loop.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Disk } from "../services/runtime/disk-watch.ts";
import { deployLimits } from "./limits.ts";

const MEGABYTE = 1_024 ** 2;
/** How the system, PostgreSQL and nats-server report a full disk. */
const NO_SPACE = /no space left on device|\bENOSPC\b/i;

/** Whether a program reports in this text that it had no space to write. */
export function isAboutSpace(text: string): boolean {
  return NO_SPACE.test(text);
}

export class DiskRoom {
  readonly #disk: Disk;
  readonly #folder: string;
  #shortAtMs = Number.NEGATIVE_INFINITY;

  constructor(disk: Disk, folder: string) {
    this.#disk = disk;
    this.#folder = folder;
  }

  /** Whether a server can start now. A disk that cannot be measured counts as one with room. */
  hasRoom(): boolean {
    const freeBytes = this.#disk.freeBytes();
    const hasRoom = freeBytes === undefined || freeBytes >= deployLimits.startFreeBytes;
    if (!hasRoom) this.#shortAtMs = performance.now();
    return hasRoom;
  }

  /** Whether there was too little room within the last seconds: a part that ends then has ended because of it. */
  wasShort(): boolean {
    return !this.hasRoom() || performance.now() - this.#shortAtMs < deployLimits.shortageEndsMs;
  }

  /** Resolves when there is room, or when the signal is aborted. */
  async whenRoom(signal: AbortSignal): Promise<void> {
    while (!this.hasRoom() && !signal.aborted) {
      await delay(deployLimits.roomPollMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** E.g. `The disk of /srv/data has 3 MB left, and 64 MB are needed`. */
  shortage(): string {
    return `The disk of ${this.#folder} has ${inMegabytes(this.#disk.freeBytes())} left, and ${inMegabytes(deployLimits.startFreeBytes)} are needed`;
  }

  /** Describes the current tier of the disk to the operator. */
  sentence(): string {
    const has = `The disk of ${this.#folder} has ${inMegabytes(this.#disk.freeBytes())} left`;
    switch (this.#disk.tier()) {
      case "ok":
        return `${has}, which is enough again.`;
      case "low":
        return `${has}; free space soon, or set DISK_RESERVE_MB lower.`;
      case "reserve":
        return `${has}, less than DISK_RESERVE_MB: registrations, offers and webhooks wait until there is more.`;
      case "full":
        return `${has}: no collection begins until there is more; those under way can be completed.`;
    }
  }
}

function inMegabytes(bytes: number | undefined): string {
  return bytes === undefined ? "an unknown number of MB" : `${Math.floor(bytes / MEGABYTE)} MB`;
}

/** Returns the folder, or its nearest parent folder that exists. */
export function existingFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : existingFolder(dirname(path));
}
