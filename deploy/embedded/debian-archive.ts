import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { deployLimits } from "../limits.ts";

const execFileAsync = promisify(execFile);

/** Where Debian and Ubuntu put the keys of Debian's archive (package `debian-archive-keyring`), newest name first. */
const KEYRINGS = ["/usr/share/keyrings/debian-archive-keyring.pgp", "/usr/share/keyrings/debian-archive-keyring.gpg"];

/** Debian's public mirror, which leads to a near one. */
const PUBLIC_MIRROR = "http://deb.debian.org/debian";

/** The machine's keys of Debian's archive; undefined when it has none. */
export function debianKeyring(candidates: readonly string[] = KEYRINGS): string | undefined {
  return candidates.find((path) => existsSync(path));
}

/** Debian's archive as this machine is set up to reach it, then the public mirror. */
export async function debianMirrors(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const configured = [...new Set(await configuredMirrors(environment))];
  return [...new Set([...configured.slice(0, deployLimits.debianMirrors), PUBLIC_MIRROR])];
}

/** First what the machine's package lists name as Debian's archive, then what only resembles it by its path. */
async function configuredMirrors(environment: NodeJS.ProcessEnv): Promise<string[]> {
  const described = await packageSources(environment, []);
  // apt leaves out sources whose lists it does not have yet, as in a fresh container, unless it need not describe them.
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

/** What the machine's apt takes packages from over HTTP. */
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
