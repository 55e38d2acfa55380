import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of its own below the system's temporary folder, and how to remove it. */
export interface TemporaryFolder {
  path: string;
  remove: () => void;
}

/** Makes one. The caller removes it, usually in `afterAll`. */
export function temporaryFolder(name: string): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), `device-payments-${name}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
