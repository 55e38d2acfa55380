/** A small file system in memory, for tests of a full disk. Only root may mount one. */
import { execFileSync } from "node:child_process";
import { closeSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./temporary-folder.ts";

const MEGABYTE = 1_024 ** 2;
const FILLER = "filler";

export interface SmallDisk {
  path: string;
  freeBytes: () => number;
  /** Fills it with one file until only this many bytes are free; 0 fills it completely. */
  fill: (leaveFreeBytes: number) => void;
  /** Removes that file. */
  empty: () => void;
  /** Makes the whole file system larger. */
  grow: (megabytes: number) => void;
  remove: () => void;
}

/** Mounts the file system. Throws when this is not allowed: a test that needs it then fails. */
export function mountSmallDisk(name: string, megabytes: number): SmallDisk {
  const folder = temporaryFolder(name);
  const { path } = folder;
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0755`, "tmpfs", path], { stdio: "pipe" });
  } catch (cause) {
    folder.remove();
    throw new Error("This test mounts a small file system, which only root may do; run it as root.", { cause });
  }
  const filler = join(path, FILLER);
  const freeBytes = (): number => {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  };
  return {
    path,
    freeBytes,
    fill: (leaveFreeBytes) => fill(filler, freeBytes, leaveFreeBytes),
    empty: () => rmSync(filler, { force: true }),
    grow: (size) => {
      execFileSync("mount", ["-o", `remount,size=${size}m`, path], { stdio: "pipe" });
    },
    remove: () => {
      // Lazily: a process that was just killed may hold a file for a moment.
      execFileSync("umount", ["--lazy", path], { stdio: "pipe" });
      folder.remove();
    },
  };
}

function fill(filler: string, freeBytes: () => number, leaveFreeBytes: number): void {
  const file = openSync(filler, "a");
  try {
    for (let bytes = freeBytes() - leaveFreeBytes; bytes > 0; bytes = freeBytes() - leaveFreeBytes) {
      writeSync(file, Buffer.alloc(Math.min(bytes, MEGABYTE)));
    }
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  } finally {
    closeSync(file);
  }
}
