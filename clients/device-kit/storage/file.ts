/** One file, which only its owner can read (Node). */
import { chmod, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { DeviceStorage } from "../record.ts";

export function fileStorage(path: string): DeviceStorage {
  return {
    async read() {
      try {
        const text = await readFile(path, "utf8");
        // All users may be able to read a copied or restored file. On a read-only file system `chmod` cannot change it.
        await chmod(path, 0o600).catch(() => undefined);
        return text;
      } catch (error) {
        if (isCode(error, "ENOENT")) return null;
        throw error;
      }
    },
    /** Writes a second file and renames it, so that a power cut leaves the whole old text or the whole new text. */
    async write(text) {
      const temporary = `${path}.new`;
      await makeFolder(dirname(path));
      const file = await open(temporary, "w", 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      await syncFolder(dirname(path));
    },
    async remove() {
      await rm(path, { force: true });
    },
  };
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

/** The new name is on the disk only after this sync. Windows cannot open a folder, and does not need the sync. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(() => undefined);
  await folder?.sync().catch(() => undefined);
  await folder?.close();
}

/** Makes a folder and its parents. With `recursive: true` Node 22 would never return for a path below /proc or /sys. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (isCode(error, "EEXIST")) return;
    if (!isCode(error, "ENOENT") || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}
