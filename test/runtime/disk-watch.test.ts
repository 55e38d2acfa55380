/** The uses that a disk allows, from much space to no space and back, on a real file system. */
import { Registry } from "prom-client";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { type Disk, type DiskWatch, isShort, tierOf, watchDisk } from "../../services/runtime/disk-watch.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const MEGABYTE = 1_024 ** 2;
const RESERVE_BYTES = 8 * MEGABYTE;
const disk = mountSmallDisk("disk-watch", 32);
const WAIT = { timeout: 10_000, interval: 20 };
const lines: object[] = [];
const log = { info: (facts: object) => lines.push(facts), warn: (facts: object) => lines.push(facts) };

const watches: DiskWatch[] = [];
afterEach(async () => {
  for (const watch of watches.splice(0)) await watch.stop();
  disk.empty();
  lines.length = 0;
});
afterAll(disk.remove);

async function startWatch(options: Partial<Parameters<typeof watchDisk>[0]> = {}): Promise<DiskWatch> {
  const started = await watchDisk({ folder: disk.path, reserveBytes: RESERVE_BYTES, log: log as never, ...options });
  watches.push(started);
  return started;
}

describe("the tier of a disk", () => {
  test.each([
    [100, "ok"],
    [16, "ok"],
    [15, "low"],
    [8, "low"],
    [7, "reserve"],
    [2, "reserve"],
    [1, "full"],
    [0, "full"],
  ] as const)("%i MB free of a reserve of 8 MB: %s", (megabytes, tier) => {
    expect(tierOf(megabytes * MEGABYTE, RESERVE_BYTES, "ok")).toBe(tier);
  });

  test("a change to a better tier: needs a quarter more space, so that the tier does not alternate", () => {
    const better = (megabytes: number): string => tierOf(megabytes * MEGABYTE, RESERVE_BYTES, "full");
    expect([2, 2.5, 9, 10, 19, 20].map(better)).toEqual(["full", "reserve", "reserve", "low", "low", "ok"]);
  });

  test("no reserve: every use is allowed to the last byte", () => {
    expect(tierOf(0, 0, "ok")).toBe("ok");
  });
});

describe("a watched disk", () => {
  test("it fills and is freed: each change of its tier is one log line, and metrics have tier and free space", async () => {
    const registry = new Registry();
    const tiers: string[] = [];
    const watched = await startWatch({ metrics: registry, onChange: (seen: Disk) => tiers.push(seen.tier()) });
    expect([watched.tier(), watched.freeBytes()]).toEqual(["ok", 32 * MEGABYTE]);
    disk.fill(12 * MEGABYTE);
    await vi.waitFor(() => expect(watched.tier()).toBe("low"), WAIT);
    expect([isShort(watched, "low"), isShort(watched, "reserve")]).toEqual([true, false]);
    disk.fill(0);
    await vi.waitFor(() => expect(watched.tier()).toBe("full"), WAIT);
    expect(isShort(watched, "reserve")).toBe(true);
    expect(await registry.metrics()).toMatch(/^device_payments_disk_free_bytes 0\n[^]*^device_payments_disk_tier 3$/m);
    disk.empty();
    await vi.waitFor(() => expect(watched.tier()).toBe("ok"), WAIT);
    expect(tiers).toEqual(["low", "full", "ok"]);
    expect(lines).toMatchObject([{ tier: "low" }, { tier: "full", freeBytes: 0 }, { tier: "ok" }]);
  });

  test("its folder does not exist: one sentence, as for any setting that is not usable", async () => {
    const folder = `${disk.path}/none`;
    await expect(startWatch({ folder })).rejects.toMatchObject({
      code: "invalid_setting",
      message: `The folder ${folder} (DISK_FOLDER) cannot be used: there is no such file or folder (ENOENT); correct the path.`,
    });
  });

  test("a file system without space for files, like /proc: it does not count as full", async () => {
    const watched = await startWatch({ folder: "/proc" });
    expect([watched.tier(), watched.freeBytes()]).toEqual(["ok", undefined]);
  });

  test("no folder is set: every use is allowed", async () => {
    expect((await startWatch({ folder: undefined })).tier()).toBe("ok");
  });
});
