import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of its own below the system's temporary folder, and how to remove it. */
export interface TemporaryFolder {
  path: string;
  remove: () => void;
}

/** Where Linux keeps files in memory. */
const IN_MEMORY = "/dev/shm";
/** The servers of all files that run at once use a fraction of it, and a machine has to have it to spare. */
const ROOMY_BYTES = 6 * 1024 ** 3;

/** Makes one. The caller removes it, usually in `afterAll`. */
export function temporaryFolder(name: string): TemporaryFolder {
  return folderBelow(tmpdir(), name);
}

/**
 * Makes one for a server's data, in memory where there is room: making and removing hundreds of databases and streams is
 * much of what a disk does here, and no test is about what a power cut leaves of a file.
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
