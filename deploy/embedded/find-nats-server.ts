import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { isNatsServerNewEnough, OLDEST_NATS_SERVER } from "../../services/bus/nats-server.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import { deployLimits } from "../limits.ts";
import { cachedNatsServer, fetchNatsServer } from "./fetch-nats-server.ts";

const execFileAsync = promisify(execFile);

/** Folders where packages put servers, and which an ordinary user's PATH often leaves out. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"];
const THREE_WAYS =
  "put a release binary from github.com/nats-io/nats-server/releases on PATH, name one with NATS_SERVER_BIN, or set NATS_URL to a running one";

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
  /** Ends a download. */
  signal?: AbortSignal;
  /** Where to search after PATH. */
  systemFolders?: readonly string[];
  /** For tests: where the package comes from, and which keys verify it. */
  mirrors?: readonly string[];
  keyrings?: readonly string[];
}

/**
 * Finds nats-server: NATS_SERVER_BIN, then PATH and the system's folders, then our cache, then the package of Debian's
 * testing suite, fetched into that cache without root. A binary that is too old is passed over unless NATS_SERVER_BIN
 * names it.
 * Throws UserError `nats_server_missing`, `nats_server_too_old` or `nats_server_unusable`.
 */
export async function findNatsServer(options: FindNatsServerOptions): Promise<NatsBinary> {
  const named = options.environment.NATS_SERVER_BIN;
  if (named !== undefined && named !== "") return await namedBinary(resolve(named));

  const cacheDir = resolve(
    options.environment.DEVICE_PAYMENTS_CACHE_DIR || join(options.checkout, ".cache"),
    "nats-server",
  );
  const cached = cachedNatsServer(cacheDir);
  const folders = [...(options.environment.PATH ?? "").split(delimiter), ...(options.systemFolders ?? SYSTEM_FOLDERS)];
  const candidates = [...folders.filter(Boolean).map((folder) => join(folder, "nats-server")), cached];
  const here = await bestOf(candidates);
  if (here !== undefined && isNatsServerNewEnough(here.version)) return here;

  const failure = await fetchNatsServer({ ...options, cacheDir });
  const fetched = failure === undefined ? await bestOf([cached]) : undefined;
  if (fetched !== undefined && isNatsServerNewEnough(fetched.version)) return fetched;
  const reason = failure ?? (fetched === undefined ? "Debian's package does not run here" : tooOld(fetched));
  const passedOver = here === undefined ? "" : `, and ${tooOld(here)}`;
  throw new UserError(
    `No nats-server ${OLDEST_NATS_SERVER} or newer was found (${reason}${passedOver}): ${THREE_WAYS}.`,
    { code: "nats_server_missing" },
  );
}

/** The first of these that is new enough; else the first that is a nats-server at all. */
async function bestOf(paths: string[]): Promise<NatsBinary | undefined> {
  let older: NatsBinary | undefined;
  for (const path of new Set(paths.filter(isExecutable))) {
    const version = await versionOf(path);
    if (version !== undefined && isNatsServerNewEnough(version)) return { path, version };
    if (version !== undefined) older ??= { path, version };
  }
  return older;
}

async function namedBinary(path: string): Promise<NatsBinary> {
  const version = isExecutable(path) ? await versionOf(path) : undefined;
  if (version === undefined) {
    throw new UserError(`NATS_SERVER_BIN names ${path}, which is not a nats-server that runs here.`, {
      code: "nats_server_unusable",
    });
  }
  if (!isNatsServerNewEnough(version)) {
    throw new UserError(
      `nats-server ${OLDEST_NATS_SERVER} or newer is needed, and NATS_SERVER_BIN names ${path}, which is ${version}: name a newer one, or unset it.`,
      { code: "nats_server_too_old" },
    );
  }
  return { path, version };
}

function tooOld(found: NatsBinary): string {
  return `${found.path} is ${found.version}`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** What `nats-server --version` says, as `2.15.1`; undefined when that is not a nats-server. */
async function versionOf(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await execFileAsync(path, ["--version"], { timeout: deployLimits.versionProbeMs });
    return /nats-server: v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}
