import { execFile } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { reasonOf } from "../../services/runtime/fault.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import { deployLimits } from "../limits.ts";
import type { PostgresAccount } from "./postgres-account.ts";
import type { PostgresBinaries } from "./postgres-binaries.ts";

const execFileAsync = promisify(execFile);

export const SUPERUSER = "postgres";

/** PostgreSQL gets no variable of ours: only where programs are, and a locale that makes its log readable to us. */
export const POSTGRES_ENVIRONMENT = { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

export interface ClusterOptions {
  binaries: PostgresBinaries;
  account: PostgresAccount | undefined;
  folder: string;
  password: string;
  /** When it is aborted while initdb runs, that is ended. */
  stopping?: AbortSignal;
}

/**
 * How the data folder is named to PostgreSQL. Another account than ours may not be allowed to walk to it (a checkout
 * below /root, a private .data), but it may work in a folder that it was started in.
 */
export function folderArgument(folder: string, account: PostgresAccount | undefined): string {
  return account === undefined ? folder : "/proc/self/cwd";
}

/**
 * Makes the data folder when there is none. Throws UserError `postgres_other_version` for one of another major version,
 * and `postgres_init_failed`.
 */
export async function prepareCluster(options: ClusterOptions): Promise<void> {
  const version = majorVersionOf(options.folder);
  if (version === options.binaries.majorVersion) return;
  if (version !== undefined) {
    throw new UserError(
      `The data folder ${options.folder} belongs to PostgreSQL ${version}, and this is PostgreSQL ${options.binaries.majorVersion}; move it over with pg_dump of the old version, or choose another folder with DATA_DIR.`,
      { code: "postgres_other_version" },
    );
  }
  // Made beside and renamed when complete, so that a start that is cut short leaves no half a database.
  const incoming = `${options.folder}.new`;
  rmSync(incoming, { recursive: true, force: true });
  mkdirSync(incoming, { recursive: true, mode: 0o700 });
  if (options.account !== undefined) chownSync(incoming, options.account.uid, options.account.gid);
  await initialise({ ...options, folder: incoming });
  rmSync(options.folder, { recursive: true, force: true });
  renameSync(incoming, options.folder);
}

function majorVersionOf(folder: string): number | undefined {
  const file = join(folder, "PG_VERSION");
  return existsSync(file) ? Number.parseInt(readFileSync(file, "utf8"), 10) : undefined;
}

async function initialise(options: ClusterOptions): Promise<void> {
  const secretFolder = mkdtempSync(join(tmpdir(), "postgres-"));
  try {
    const passwordFile = join(secretFolder, "password");
    writeFileSync(passwordFile, options.password, { mode: 0o600 });
    if (options.account !== undefined) {
      for (const path of [passwordFile, secretFolder]) chownSync(path, options.account.uid, options.account.gid);
    }
    const args = [
      `--pgdata=${folderArgument(options.folder, options.account)}`,
      `--username=${SUPERUSER}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // The built-in provider sorts the same on every machine, whatever locales it has.
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--no-instructions",
    ];
    await execFileAsync(options.binaries.initdb, args, {
      ...options.account,
      cwd: options.folder,
      env: POSTGRES_ENVIRONMENT,
      timeout: deployLimits.postgresInitMs,
      ...(options.stopping === undefined ? {} : { signal: options.stopping }),
    });
  } catch (error) {
    const output = error instanceof Error && "stderr" in error ? String(error.stderr) : "";
    const reason = /(?:error|FATAL):\s+(.*)/.exec(output)?.[1] ?? reasonOf(error);
    throw new UserError(`The database folder ${options.folder} could not be made: ${reason}.`, {
      code: "postgres_init_failed",
      cause: error,
    });
  } finally {
    rmSync(secretFolder, { recursive: true, force: true });
  }
}
