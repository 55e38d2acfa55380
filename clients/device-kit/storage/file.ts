/** One file, which only its owner can read (Node). */
import { chmod, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { DeviceStorage } from "../record.ts";

export function fileStorage(path: string): DeviceStorage {
  return {
    async read() {
      try {
        const text = await readFile(path, "utf8");
        // A copied or restored file may be readable by all users. Where nothing can be written, it stays so.
        await chmod(path, 0o600).catch(() => undefined);
        return text;
      } catch (error) {
        if (isCode(error, "ENOENT")) return null;
        throw error;
      }
    },
    /** Writes beside and renames, so that a power cut leaves the old or the new text, never half of one. */
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

/** The new name is on the disk only after this. Windows cannot open a folder, and needs none of it. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(() => undefined);
  await folder?.sync().catch(() => undefined);
  await folder?.close();
}

/** Makes a folder and those above it. Not by the option for that, with which Node 22 never returns below /proc or /sys. */
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
