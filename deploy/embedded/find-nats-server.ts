/** Where the nats-server binary is, and how it is fetched when this machine has none. */
import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { isNatsServerNewEnough, OLDEST_NATS_SERVER } from "../../services/bus/nats-server.ts";
import { reasonOf } from "../../services/runtime/fault.ts";
import { UserError } from "../../services/runtime/user-error.ts";
import { makeFolder } from "../bootstrap/folders.mjs";
import { deployLimits } from "../limits.ts";
import { AptError, debianKeyring, debianMirrors, hasApt, withApt } from "./apt.ts";

const execFileAsync = promisify(execFile);

/** Folders where packages install servers, and which the PATH of an ordinary user often lacks. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"];
const THREE_WAYS =
  "put a release binary from github.com/nats-io/nats-server/releases on PATH, name one with NATS_SERVER_BIN, or set NATS_URL to a running one";

/** A usable nats-server binary. */
export interface NatsBinary {
  path: string;
  version: string;
}

interface FetchOptions {
  /** apt finds its programs and its settings by these variables. */
  environment: NodeJS.ProcessEnv;
  print: (line: string) => void;
  /** Ends a download. */
  signal?: AbortSignal;
  /** For tests: Debian mirrors, tried in turn, and keyrings, the first that exists. */
  mirrors?: readonly string[];
  keyrings?: readonly string[];
}

interface FindNatsServerOptions extends FetchOptions {
  /** The checkout; the cache is below it unless DEVICE_PAYMENTS_CACHE_DIR names another folder. */
  checkout: string;
  /** Where to search after PATH. */
  systemFolders?: readonly string[];
}

interface FetchNatsServerOptions extends FetchOptions {
  /** The program goes into this folder. */
  cacheDir: string;
}

/**
 * Finds nats-server: NATS_SERVER_BIN, then PATH and the system's folders, then our cache, then the package of Debian's
 * testing suite, fetched into that cache without root. A binary that is too old is skipped, or refused when NATS_SERVER_BIN
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
  const reason = failure?.reason ?? (fetched === undefined ? "Debian's package does not run here" : tooOld(fetched));
  const skipped = here === undefined ? "" : `, and ${tooOld(here)}`;
  throw new UserError(
    `No nats-server ${OLDEST_NATS_SERVER} or newer was found (${reason}${skipped}): ${[THREE_WAYS, ...(failure?.ways ?? [])].join(", or ")}.`,
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
    throw new UserError(
      `NATS_SERVER_BIN names ${path}, which is not a nats-server that runs here: name another one, or unset it.`,
      {
        code: "nats_server_unusable",
      },
    );
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

/** The version that `nats-server --version` prints, as `2.15.1`; undefined when that is not a nats-server. */
async function versionOf(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await execFileAsync(path, ["--version"], { timeout: deployLimits.versionProbeMs });
    return /nats-server: v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

/** Debian's testing suite by its name: the first release whose nats-server is new enough. */
const SUITE = "forky";
/** Where Debian's package keeps the program. */
const PROGRAM = join("usr", "sbin", "nats-server");

/** Where a fetched nats-server is kept. */
export function cachedNatsServer(cacheDir: string): string {
  return join(cacheDir, "nats-server");
}

/** Why nothing was fetched. */
interface FetchFailure {
  /** Part of a sentence. */
  reason: string;
  /** What a person can do in addition to `THREE_WAYS`. */
  ways?: readonly string[];
}

/**
 * Fetches the nats-server package of Debian's testing suite and keeps its program in the cache. Needs no root and installs
 * nothing. apt verifies the archive's signed lists with the machine's keyring, and the package with these lists.
 * Returns undefined, or the reason why it did not work.
 */
export async function fetchNatsServer(options: FetchNatsServerOptions): Promise<FetchFailure | undefined> {
  const { environment, cacheDir, print } = options;
  if (!(await hasApt(environment))) return { reason: "this system has no apt-get to fetch it with" };
  const keyring = debianKeyring(options.keyrings);
  if (keyring === undefined) {
    return {
      reason:
        "this system has no keys of Debian's archive to verify a download with; the package debian-archive-keyring has them",
    };
  }
  try {
    makeFolder(cacheDir);
    accessSync(cacheDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    return {
      reason: `Debian's package cannot be kept in ${cacheDir}: ${reasonOf(error)}`,
      ways: ["set DEVICE_PAYMENTS_CACHE_DIR to a folder that can be written"],
    };
  }
  print("Fetching nats-server from Debian's package archive …");
  let reason = "";
  for (const mirror of options.mirrors ?? (await debianMirrors(environment))) {
    if (options.signal?.aborted === true) return { reason: "the download was stopped" };
    try {
      await fetchFrom(mirror, { ...options, keyring });
      return undefined;
    } catch (error) {
      reason =
        error instanceof AptError
          ? `Debian's package could not be fetched: ${error.message}`
          : `Debian's package could not be kept in ${options.cacheDir}: ${reasonOf(error)}`;
    }
  }
  return { reason };
}

async function fetchFrom(mirror: string, options: FetchNatsServerOptions & { keyring: string }): Promise<void> {
  const { environment: env, cacheDir, keyring, signal } = options;
  const { stdout: architecture } = await execFileAsync("dpkg", ["--print-architecture"], { env });
  const wanted = `signed-by=${keyring} arch=${architecture.trim()} target=Packages lang=none`;
  const sources = [`deb [${wanted}] ${mirror} ${SUITE} main`];
  await withApt({ environment: env, sources, signal }, async (apt) => {
    await apt.get("update");
    await apt.get("download", "nats-server");
    const unpacked = mkdtempSync(join(cacheDir, "unpack-"));
    try {
      for (const archive of apt.packages()) await execFileAsync("dpkg-deb", ["-x", archive, unpacked], { env });
      if (!existsSync(join(unpacked, PROGRAM))) throw new AptError(`the package has no ${PROGRAM}`);
      // Renamed when complete: neither an interrupted start nor a second start at the same time leaves an incomplete program.
      renameSync(join(unpacked, PROGRAM), cachedNatsServer(cacheDir));
    } finally {
      rmSync(unpacked, { recursive: true, force: true });
    }
  });
}
