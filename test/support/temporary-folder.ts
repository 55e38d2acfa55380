import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new folder, and a function that removes it. */
export interface TemporaryFolder {
  path: string;
  remove: () => void;
}

/** Where Linux keeps files in memory. */
const IN_MEMORY = "/dev/shm";
/** The machine must have this much free. The servers of all files that run at once use a fraction of it. */
const ROOMY_BYTES = 6 * 1024 ** 3;

/** Makes a folder below the system's temporary folder. The caller removes it, usually in `afterAll`. */
export function temporaryFolder(name: string): TemporaryFolder {
  return folderBelow(tmpdir(), name);
}

/**
 * Makes a folder for a server's data, in memory where there is room. Creating and removing hundreds of databases and
 * streams is much work for a disk, and no test checks what a power cut leaves of a file.
 */
export function serverFolder(name: string): TemporaryFolder {
  return folderBelow(hasRoom(IN_MEMORY) ? IN_MEMORY : tmpdir(), name);
}

function folderBelow(base: string, name: string): TemporaryFolder {
  const path = mkdtempSync(join(base, `device-payments-${name}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= ROOMY_BYTES;
  } catch {
    return false;
  }
}
