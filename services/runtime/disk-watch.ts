/**
 * Measures every second how much space the disk of a folder has left. Each process measures separately, so it knows the
 * tier also while the bus and the database are down.
 *
 *   free ≥ 2 × reserve    ok        everything
 *   free < 2 × reserve    low       everything, with a warning
 *   free < reserve        reserve   what can wait is refused or paused
 *   free < reserve / 4    full      no collection begins; those under way are completed
 */
import { statfs } from "node:fs/promises";
import type { Registry } from "prom-client";
import { cannotBeUsed } from "./fault.ts";
import { DISK_LIMITS } from "./limits.ts";
import type { Log } from "./log.ts";
import { addGauge } from "./metrics.ts";
import { repeat } from "./repeat.ts";
import { errorCode, UserError } from "./user-error.ts";

/** From most to least space. */
export const DISK_TIERS = ["ok", "low", "reserve", "full"] as const;
export type DiskTier = (typeof DISK_TIERS)[number];

export interface Disk {
  /** Undefined until the first measurement; never NaN. */
  freeBytes(): number | undefined;
  tier(): DiskTier;
}

export interface DiskWatch extends Disk {
  stop(): Promise<void>;
}

interface DiskWatchOptions {
  /** Undefined: no disk is watched, and everything is allowed. */
  readonly folder: string | undefined;
  /** 0: the process measures the space, and everything is allowed. */
  readonly reserveBytes: number;
  readonly log: Pick<Log, "info" | "warn">;
  readonly metrics?: Registry | undefined;
  /** Called on each change of the tier. */
  readonly onChange?: (disk: Disk) => void;
}

/** A disk that allows everything. */
export const UNWATCHED: Disk = { freeBytes: () => undefined, tier: () => "ok" };

/**
 * Errors of a wrong path. The process must not start with a typing error in the setting, because the disk would not be
 * watched.
 */
const WRONG_PATH: readonly string[] = ["ENOENT", "ENOTDIR", "EACCES"];

/**
 * Resolves after the first check. Throws UserError `invalid_setting` when the folder does not exist. When a measurement
 * fails for another reason, or later, the tier does not change.
 */
export async function watchDisk(options: DiskWatchOptions): Promise<DiskWatch> {
  const { folder, reserveBytes, log, metrics, onChange } = options;
  if (folder === undefined) return { ...UNWATCHED, stop: async () => undefined };
  let freeBytes: number | undefined;
  let tier: DiskTier = "ok";
  const disk: Disk = { freeBytes: () => freeBytes, tier: () => tier };
  const check = async (): Promise<void> => {
    const { blocks, bavail, bsize } = await statfs(folder);
    // A file system without blocks, such as /proc, has no space to measure.
    if (blocks === 0) return;
    freeBytes = bavail * bsize;
    const next = tierOf(freeBytes, reserveBytes, tier);
    if (next === tier) return;
    tier = next;
    const facts = { folder, tier, freeBytes, reserveBytes };
    if (tier === "ok") log.info(facts, "the disk has space again");
    else log.warn(facts, "the disk is short of space");
    onChange?.(disk);
  };
  await check().catch((error: unknown) => {
    if (!WRONG_PATH.includes(errorCode(error))) return log.warn({ err: error, folder }, "the disk cannot be measured");
    const sentence = cannotBeUsed(`The folder ${folder} (DISK_FOLDER)`, error);
    throw new UserError(sentence, { code: "invalid_setting", cause: error });
  });
  const checking = repeat({ everyMs: DISK_LIMITS.checkMs, what: "measuring the disk", log }, check);
  addGauge(
    metrics,
    "disk_free_bytes",
    "Free bytes on the disk that this process watches.",
    () => freeBytes ?? Number.NaN,
  );
  addGauge(metrics, "disk_tier", "0 ok, 1 low, 2 below the reserve, 3 full.", () => DISK_TIERS.indexOf(tier));
  return { ...disk, stop: () => checking.stop() };
}

/** Whether the disk is in the tier `from` or in one with less space. */
export function isShort(disk: Disk, from: Exclude<DiskTier, "ok">): boolean {
  return DISK_TIERS.indexOf(disk.tier()) >= DISK_TIERS.indexOf(from);
}

/**
 * The tier for this much space. For a better tier than before, a quarter more space is needed, so that the tier does
 * not alternate.
 */
export function tierOf(freeBytes: number, reserveBytes: number, before: DiskTier): DiskTier {
  const below = { low: reserveBytes * 2, reserve: reserveBytes, full: reserveBytes / 4 };
  const rank = (scale: number): number => {
    if (freeBytes < below.full * scale) return 3;
    if (freeBytes < below.reserve * scale) return 2;
    return freeBytes < below.low * scale ? 1 : 0;
  };
  const reached = Math.max(rank(1), Math.min(DISK_TIERS.indexOf(before), rank(DISK_LIMITS.betterFrom)));
  return DISK_TIERS[reached] ?? "ok";
}
