/** Runs apt in a temporary folder, and finds the mirrors of Debian's archive that this machine uses. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeFolder } from "../bootstrap/folders.mjs";
import { deployLimits } from "../limits.ts";

const execFileAsync = promisify(execFile);

/** apt in a temporary folder. */
interface Apt {
  /** Runs `apt-get` with these arguments in the folder. Throws {@link AptError}. */
  get: (...args: string[]) => Promise<void>;
  /** The packages that apt has put into its folder, as paths of .deb files. */
  packages: () => string[];
}

interface AptOptions {
  /** apt finds its programs and its settings by these variables. */
  environment: NodeJS.ProcessEnv;
  /** Lines of sources.list. Without them, apt uses the machine's sources and its record of installed packages. */
  sources?: readonly string[];
  /** Ends apt. */
  signal?: AbortSignal | undefined;
}

/** apt failed; the message is the reason that it gave. */
export class AptError extends Error {
  override readonly name = "AptError";
}

/**
 * Runs `work` with an apt whose package lists, downloads and settings are in a temporary folder. It needs no root and
 * changes nothing on the machine. It also uses the settings of the machine's apt, such as proxies.
 */
export async function withApt<Result>(options: AptOptions, work: (apt: Apt) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "apt-"));
  try {
    const settings = join(folder, "apt.conf");
    makeFolder(join(folder, "lists", "partial"));
    makeFolder(join(folder, "archives", "partial"));
    writeFileSync(settings, configuration(folder, options.sources !== undefined));
    if (options.sources !== undefined) writeFileSync(join(folder, "sources.list"), `${options.sources.join("\n")}\n`);
    const run = {
      cwd: folder,
      env: { ...options.environment, LC_ALL: "C" },
      timeout: deployLimits.aptDownloadMs,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    };
    return await work({
      get: async (...args) => {
        try {
          await execFileAsync("apt-get", ["-q", "-y", "-c", settings, ...args], run);
        } catch (error) {
          throw new AptError(reasonOf(error), { cause: error });
        }
      },
      packages: () =>
        [folder, join(folder, "archives")].flatMap((place) =>
          readdirSync(place)
            .filter((name) => name.endsWith(".deb"))
            .map((name) => join(place, name)),
        ),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** True when this machine has the programs that fetch and unpack packages. */
export async function hasApt(environment: NodeJS.ProcessEnv): Promise<boolean> {
  const probe = { env: environment, timeout: deployLimits.versionProbeMs };
  const probes = ["apt-get", "dpkg-deb"].map((program) => execFileAsync(program, ["--version"], probe));
  return (await Promise.allSettled(probes)).every(({ status }) => status === "fulfilled");
}

function configuration(folder: string, hasOwnSources: boolean): string {
  const path = (...names: string[]): string => JSON.stringify(join(folder, ...names));
  // The sources are of another release: the machine's pins and installed packages must not affect the choice.
  const ownSources = `
Dir::Etc::SourceList ${path("sources.list")};
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State::Status "/dev/null";
APT::Default-Release "";
APT::Update::Error-Mode "any";
`;
  return `# The machine's update hooks are for its own package lists.
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::State::Lists ${path("lists")};
Dir::Cache ${path()};
Dir::Cache::Archives ${path("archives")};
# apt installs nothing here, so it needs no lock. When root runs apt, it downloads as another user, who may not enter
# this folder.
Debug::NoLocking "true";
APT::Sandbox::User "";
# apt refuses repositories and packages without a valid signature, even when the machine's settings allow them.
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
Acquire::Retries "${deployLimits.aptRetries}";
Acquire::http::Timeout "${deployLimits.aptSilenceS}";
Acquire::https::Timeout "${deployLimits.aptSilenceS}";
${hasOwnSources ? ownSources : ""}`;
}

/** apt's reason without its prefix and full stop: its warning about a signature, or else its first error. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && "killed" in error && error.killed === true) {
    return `apt-get took longer than ${deployLimits.aptDownloadMs / 1000} s`;
  }
  const output = error instanceof Error && "stderr" in error ? String(error.stderr) : "";
  return /^W: (GPG error: .*?)\.?$/m.exec(output)?.[1] ?? /^E: (.*?)\.?$/m.exec(output)?.[1] ?? "apt-get failed";
}

/** Where Debian and Ubuntu put the keys of Debian's archive (package `debian-archive-keyring`), newest name first. */
const KEYRINGS = ["/usr/share/keyrings/debian-archive-keyring.pgp", "/usr/share/keyrings/debian-archive-keyring.gpg"];

/** Debian's public mirror, which a server near this machine answers. */
const PUBLIC_MIRROR = "http://deb.debian.org/debian";

/** The machine's keys of Debian's archive; undefined when it has none. */
export function debianKeyring(candidates: readonly string[] = KEYRINGS): string | undefined {
  return candidates.find((path) => existsSync(path));
}

/** The Debian mirrors that this machine's apt uses, then the public mirror. */
export async function debianMirrors(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const configured = [...new Set(await configuredMirrors(environment))];
  return [...new Set([...configured.slice(0, deployLimits.debianMirrors), PUBLIC_MIRROR])];
}

/** First the sources that the package lists describe as Debian's, then the sources that only have a path like Debian's. */
async function configuredMirrors(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const described = await packageSources(environment, []);
  // Without this option, apt omits sources whose lists it does not have yet, as in a new container.
  const others = await packageSources(environment, ["--no-release-info"]);
  return [
    ...described.filter(({ origin, label }) => origin === "Debian" && label === "Debian"),
    ...others.filter(({ address }) => /\/debian\/*$/.test(address)),
  ].map(({ address }) => address.replace(/\/+$/, ""));
}

interface PackageSource {
  readonly origin: string;
  readonly label: string;
  readonly address: string;
}

/** The HTTP sources of the machine's apt. */
async function packageSources(env: NodeJS.ProcessEnv, options: readonly string[]): Promise<PackageSource[]> {
  const args = ["indextargets", ...options, "--format", "$(ORIGIN)\t$(LABEL)\t$(REPO_URI)", "Created-By: Packages"];
  try {
    const { stdout } = await execFileAsync("apt-get", args, { env, timeout: deployLimits.versionProbeMs });
    return stdout.split("\n").flatMap((line) => {
      const [origin = "", label = "", address = ""] = line.split("\t");
      const isHttp = URL.canParse(address) && ["http:", "https:"].includes(new URL(address).protocol);
      return isHttp ? [{ origin, label, address }] : [];
    });
  } catch {
    return [];
  }
}
