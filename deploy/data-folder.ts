/** The data folder: one process at a time may use it, and its secrets survive restarts. */
import { randomBytes } from "node:crypto";
import { accessSync, chmodSync, constants, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { cannotBeUsed } from "../services/runtime/fault.ts";
import { errorCode, UserError } from "../services/runtime/user-error.ts";
import { LOCK_LIMITS, type LockRefused, makeFolder, waitForLock } from "./bootstrap/folders.mjs";

/** The wait for a lock of another machine or container. When its owner was just killed, the lock is stale after this time. */
const FOREIGN_WAIT_MS = LOCK_LIMITS.foreignStaleMs + 1_000;

/**
 * Makes the data folder and locks it for this process alone. Returns the function that releases it.
 * Throws UserError `data_folder_forbidden` or `data_folder_in_use`.
 */
export async function openDataFolder(dataDir: string, print: (line: string) => void): Promise<() => void> {
  try {
    makeFolder(join(dataDir, "logs"), 0o700);
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    return await lock(dataDir, print);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(cannotBeUsed(`The data folder ${dataDir} (DATA_DIR)`, error), {
      code: "data_folder_forbidden",
      cause: error,
    });
  }
}

async function lock(dataDir: string, print: (line: string) => void): Promise<() => void> {
  const attempt = await waitForLock(join(dataDir, "start.lock"), {
    timeoutMs: FOREIGN_WAIT_MS,
    isFinal: (refused) => refused.ownerVisible,
    onWait: () =>
      print("The data folder was in use on another machine or container; waiting to see whether it still is."),
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

/** Enough for a password or a token. */
const SECRET_BYTES = 24;

/**
 * Returns a secret of the data folder: `bytes` random bytes as base64url. It is generated at its first use and stored in
 * `secrets.json`, so that a restart reads the same one. Throws UserError `secrets_unreadable` when the file is damaged.
 */
export function secretOf(dataDir: string, name: string, bytes = SECRET_BYTES): string {
  const path = join(dataDir, "secrets.json");
  const secrets = readSecrets(path);
  const made = secrets[name] ?? randomBytes(bytes).toString("base64url");
  if (secrets[name] === undefined) writePrivateJson(path, { ...secrets, [name]: made });
  return made;
}

function readSecrets(path: string): Record<string, string> {
  try {
    return z.record(z.string(), z.string()).parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return {};
    throw new UserError(
      `The secrets in ${path} cannot be read: restore that file; where it is lost, remove it and follow "When a secret is lost" in docs/operations.md.`,
      {
        code: "secrets_unreadable",
        cause: error,
      },
    );
  }
}

/**
 * Writes a file that no other user of the machine may read. It writes a new file and renames it, so that a crash leaves
 * either the old or the new file complete.
 */
export function writePrivateJson(path: string, value: unknown): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  chmodSync(`${path}.new`, 0o600);
  renameSync(`${path}.new`, path);
}
