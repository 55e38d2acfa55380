import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { reasonOf } from "../../services/runtime/fault.ts";
import { AptError, hasApt, withApt } from "./apt.ts";
import { debianKeyring, debianMirrors } from "./debian-archive.ts";

const execFileAsync = promisify(execFile);

/** Debian's testing suite by its name: the first release whose nats-server is new enough. */
const SUITE = "forky";
/** Where Debian's package keeps the program. */
const PROGRAM = join("usr", "sbin", "nats-server");

export interface FetchNatsServerOptions {
  /** The program goes into this folder. */
  cacheDir: string;
  /** apt finds its programs and its settings by these variables. */
  environment: NodeJS.ProcessEnv;
  say: (line: string) => void;
  /** Ends the download. */
  signal?: AbortSignal;
  /** For tests: Debian mirrors, tried in turn, and keyrings, the first that exists. */
  mirrors?: readonly string[];
  keyrings?: readonly string[];
}

/** Where a fetched nats-server is kept. */
export function cachedNatsServer(cacheDir: string): string {
  return join(cacheDir, "nats-server");
}

/**
 * Fetches the nats-server package of Debian's testing suite and keeps its program in the cache. Needs no root and installs
 * nothing; apt verifies the archive's signature with the machine's keyring, and by it the package.
 * Returns undefined, or the reason why it did not work, to be put into a sentence.
 */
export async function fetchNatsServer(options: FetchNatsServerOptions): Promise<string | undefined> {
  const { environment, say } = options;
  if (!(await hasApt(environment))) return "this system has no apt-get to fetch it with";
  const keyring = debianKeyring(options.keyrings);
  if (keyring === undefined) {
    return "this system has no keys of Debian's archive to verify a download with; the package debian-archive-keyring has them";
  }
  say("Fetching nats-server from Debian's package archive …");
  let reason = "";
  for (const mirror of options.mirrors ?? (await debianMirrors(environment))) {
    if (options.signal?.aborted === true) return "the download was stopped";
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
  return reason;
}

async function fetchFrom(mirror: string, options: FetchNatsServerOptions & { keyring: string }): Promise<void> {
  const { environment: env, cacheDir, keyring, signal } = options;
  const { stdout: architecture } = await execFileAsync("dpkg", ["--print-architecture"], { env });
  const wanted = `signed-by=${keyring} arch=${architecture.trim()} target=Packages lang=none`;
  const sources = [`deb [${wanted}] ${mirror} ${SUITE} main`];
  await withApt({ environment: env, sources, signal }, async (apt) => {
    await apt.get("update");
    await apt.get("download", "nats-server");
    mkdirSync(cacheDir, { recursive: true });
    const unpacked = mkdtempSync(join(cacheDir, "unpack-"));
    try {
      for (const archive of apt.packages()) await execFileAsync("dpkg-deb", ["-x", archive, unpacked], { env });
      if (!existsSync(join(unpacked, PROGRAM))) throw new AptError(`the package has no ${PROGRAM}`);
      // Renamed when complete: a start that is cut short, or another one at the same time, finds a whole program or none.
      renameSync(join(unpacked, PROGRAM), cachedNatsServer(cacheDir));
    } finally {
      rmSync(unpacked, { recursive: true, force: true });
    }
  });
}
