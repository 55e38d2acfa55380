import { readFileSync, statSync } from "node:fs";
import { UserError } from "../../services/runtime/user-error.ts";

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
