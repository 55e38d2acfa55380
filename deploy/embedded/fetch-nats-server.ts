import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorCode } from "../../services/runtime/user-error.ts";
import { deployLimits } from "../limits.ts";

const execFileAsync = promisify(execFile);

export interface FetchNatsServerOptions {
  /** The unpacked package goes to `root` below this folder. */
  cacheDir: string;
  /** apt finds its programs and its settings by these variables. */
  environment: NodeJS.ProcessEnv;
  say: (line: string) => void;
}

/**
 * Fetches the nats-server package of Debian or Ubuntu and unpacks it into the cache. Needs no root and installs nothing;
 * apt verifies the package's signature chain as for any installation. Where the machine has no package lists, as fresh
 * containers do not, lists of our own are fetched into a temporary folder.
 * Returns undefined, or the reason why it did not work, to be put into a sentence.
 */
export async function fetchNatsServer(options: FetchNatsServerOptions): Promise<string | undefined> {
  const { environment: env } = options;
  if (!(await exists("apt-get", env)) || !(await exists("dpkg-deb", env)))
    return "this system has no apt-get to fetch it with";
  options.say("Fetching nats-server from this system's package archive …");
  // A short path with no blanks: apt takes its folders as options. World-readable, because apt may read as its own user.
  const work = mkdtempSync(join(tmpdir(), "nats-server-"));
  try {
    const archive =
      (await download({ work, env }, [])) ?? (await download({ work, env }, await ownLists({ work, env })));
    if (archive === undefined) return "its package could not be downloaded";
    mkdirSync(options.cacheDir, { recursive: true });
    const unpacked = mkdtempSync(join(options.cacheDir, "unpack-"));
    await execFileAsync("dpkg-deb", ["-x", archive, unpacked], { env });
    // Renamed only when complete, so that a start that is cut short leaves no half a binary.
    rmSync(join(options.cacheDir, "root"), { recursive: true, force: true });
    renameSync(unpacked, join(options.cacheDir, "root"));
    return undefined;
  } catch (error) {
    return `its package could not be fetched into ${options.cacheDir}, ${errorCode(error)}`;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function exists(command: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  try {
    await execFileAsync(command, ["--version"], { env, timeout: deployLimits.versionProbeMs });
    return true;
  } catch {
    return false;
  }
}

/** As root apt would hand the download to its own user, who may not enter our folder; the package is verified all the same. */
const NO_SANDBOX_USER = ["-o", "APT::Sandbox::User="];

interface AptWork {
  /** The folder that apt works in. */
  work: string;
  env: NodeJS.ProcessEnv;
}

async function aptGet({ work, env }: AptWork, options: string[], args: string[]): Promise<boolean> {
  try {
    await execFileAsync("apt-get", ["-q", ...NO_SANDBOX_USER, ...options, ...args], {
      cwd: work,
      env,
      timeout: deployLimits.aptDownloadMs,
    });
    return true;
  } catch {
    return false;
  }
}

async function download(apt: AptWork, options: string[] | undefined): Promise<string | undefined> {
  if (options === undefined || !(await aptGet(apt, options, ["download", "nats-server"]))) return undefined;
  const name = readdirSync(apt.work).find((file) => file.endsWith(".deb"));
  return name === undefined ? undefined : join(apt.work, name);
}

/** apt options for package lists of our own, fetched now; undefined when that does not work. */
async function ownLists(apt: AptWork): Promise<string[] | undefined> {
  const lists = join(apt.work, "lists");
  const cache = join(apt.work, "cache");
  mkdirSync(join(lists, "partial"), { recursive: true });
  mkdirSync(join(cache, "archives", "partial"), { recursive: true });
  const options = ["-o", `Dir::State::Lists=${lists}`, "-o", `Dir::Cache=${cache}`];
  return (await aptGet(apt, options, ["update"])) ? options : undefined;
}
