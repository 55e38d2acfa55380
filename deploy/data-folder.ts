import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { cannotBeUsed } from "../services/runtime/fault.ts";
import { UserError } from "../services/runtime/user-error.ts";
import { LOCK_LIMITS, type LockRefused, waitForLock } from "./bootstrap/folder-lock.mjs";

/** A refused lock of another machine may be left over from a container killed a moment ago; it is stale after this. */
const FOREIGN_WAIT_MS = LOCK_LIMITS.foreignStaleMs + 1_000;

/**
 * Makes the data folder and takes it for this process alone. Returns the function that lets it go.
 * Throws UserError `data_folder_forbidden` or `data_folder_in_use`.
 */
export async function openDataFolder(dataDir: string, say: (line: string) => void): Promise<() => void> {
  try {
    makeFolder(join(dataDir, "logs"));
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    return await lock(dataDir, say);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(cannotBeUsed(`The data folder ${dataDir} (DATA_DIR)`, error), {
      code: "data_folder_forbidden",
      cause: error,
    });
  }
}

/** Makes a folder and those above it. Not `mkdir` with `recursive`, which on Node 22 never returns below /proc or /sys. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  if (!existsSync(dirname(path))) makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

async function lock(dataDir: string, say: (line: string) => void): Promise<() => void> {
  const attempt = await waitForLock(join(dataDir, "start.lock"), {
    timeoutMs: FOREIGN_WAIT_MS,
    giveUp: (refused) => refused.ownerVisible,
    onWait: () =>
      say("The data folder was in use on another machine or container; waiting to see whether it still is."),
  });
  if (attempt.held) return attempt.release;
  throw new UserError(
    `The data folder ${dataDir} is in use by ${owner(attempt)}; stop that one first, or choose another folder with DATA_DIR.`,
    { code: "data_folder_in_use" },
  );
}

function owner(refused: LockRefused): string {
  const id = refused.ownerPid === undefined ? "" : ` (process ${refused.ownerPid})`;
  return refused.ownerVisible ? `another start${id}` : `another start${id} on another machine or in another container`;
}
