import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { UserError } from "../../services/runtime/user-error.ts";
import { deployLimits } from "../limits.ts";
import { fetchNatsServer } from "./fetch-nats-server.ts";

const execFileAsync = promisify(execFile);

/** Folders where packages put servers, and which an ordinary user's PATH often leaves out. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"];
/** Older releases answer compare-and-set appends wrongly. */
const OLDEST_VERSION = "2.9.10";
const THREE_WAYS =
  "install the package (`apt install nats-server`), put a release binary from github.com/nats-io/nats-server/releases on PATH, or set NATS_URL to a running one";

/** A usable nats-server binary. */
export interface NatsBinary {
  path: string;
  version: string;
}

export interface FindNatsServerOptions {
  environment: NodeJS.ProcessEnv;
  /** The checkout; the cache is below it unless DEVICE_PAYMENTS_CACHE_DIR says otherwise. */
  checkout: string;
  say: (line: string) => void;
  /** Where to look after PATH. */
  systemFolders?: readonly string[];
}

/**
 * Finds nats-server: NATS_SERVER_BIN, then PATH and the system's folders, then our cache, then the package of Debian or
 * Ubuntu, fetched into that cache without root. A binary that is too old is passed over unless NATS_SERVER_BIN names it.
 * Throws UserError `nats_server_missing`, `nats_server_too_old` or `nats_server_unusable`.
 */
export async function findNatsServer(options: FindNatsServerOptions): Promise<NatsBinary> {
  const named = options.environment.NATS_SERVER_BIN;
  if (named !== undefined && named !== "") return await namedBinary(resolve(named));

  const cacheDir = resolve(
    options.environment.DEVICE_PAYMENTS_CACHE_DIR || join(options.checkout, ".cache"),
    "nats-server",
  );
  const cached = ["sbin", "bin"].map((folder) => join(cacheDir, "root", "usr", folder, "nats-server"));
  const folders = [...(options.environment.PATH ?? "").split(delimiter), ...(options.systemFolders ?? SYSTEM_FOLDERS)];
  const candidates = [...folders.filter(Boolean).map((folder) => join(folder, "nats-server")), ...cached];
  const here = await bestOf(candidates);
  if (here !== undefined && isAtLeast(here.version, OLDEST_VERSION)) return here;

  const failure = await fetchNatsServer({ cacheDir, environment: options.environment, say: options.say });
  const fetched = await bestOf(cached);
  if (fetched !== undefined && isAtLeast(fetched.version, OLDEST_VERSION)) return fetched;
  const tooOld = here ?? fetched;
  if (tooOld !== undefined) throw tooOldError(tooOld);
  throw new UserError(`No nats-server was found (${failure ?? "the package has none"}): ${THREE_WAYS}.`, {
    code: "nats_server_missing",
  });
}

/** The first of these that is new enough; else the first that is a nats-server at all. */
async function bestOf(paths: string[]): Promise<NatsBinary | undefined> {
  let tooOld: NatsBinary | undefined;
  for (const path of new Set(paths.filter(isExecutable))) {
    const version = await versionOf(path);
    if (version !== undefined && isAtLeast(version, OLDEST_VERSION)) return { path, version };
    if (version !== undefined) tooOld ??= { path, version };
  }
  return tooOld;
}

async function namedBinary(path: string): Promise<NatsBinary> {
  const version = isExecutable(path) ? await versionOf(path) : undefined;
  if (version === undefined) {
    throw new UserError(`NATS_SERVER_BIN names ${path}, which is not a nats-server that runs here.`, {
      code: "nats_server_unusable",
    });
  }
  if (!isAtLeast(version, OLDEST_VERSION)) throw tooOldError({ path, version });
  return { path, version };
}

function tooOldError(found: NatsBinary): UserError {
  return new UserError(
    `nats-server ${OLDEST_VERSION} or newer is needed, and ${found.path} is ${found.version}: ${THREE_WAYS}.`,
    { code: "nats_server_too_old" },
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** What `nats-server --version` says, as `2.9.10`; undefined when that is not a nats-server. */
async function versionOf(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await execFileAsync(path, ["--version"], { timeout: deployLimits.versionProbeMs });
    return /nats-server: v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

/** Compares versions of three numbers. */
export function isAtLeast(version: string, wanted: string): boolean {
  const [have, want] = [version, wanted].map((text) => text.split(".").map(Number));
  for (const [place, number] of (want ?? []).entries()) {
    const mine = have?.[place] ?? 0;
    if (mine !== number) return mine > number;
  }
  return true;
}
