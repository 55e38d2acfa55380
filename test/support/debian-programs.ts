/**
 * Programs of the distribution that tests run. A program that is not installed is fetched without root: its package, and
 * the libraries that the machine lacks, are unpacked into the cache.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { withApt } from "../../deploy/embedded/apt.ts";

const execFileAsync = promisify(execFile);
const CHECKOUT = join(import.meta.dirname, "..", "..");
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin"];

/** The packages that have another name than their program. */
const PACKAGES: Readonly<Record<string, string>> = { promtool: "prometheus" };

export interface DebianProgram {
  readonly path: string;
  /** Folders for LD_LIBRARY_PATH, with the libraries that were fetched for the program. Empty for an installed program. */
  readonly libraries: string;
}

/**
 * Finds programs by name. Each package has the name of its program, unless `PACKAGES` names another. Rejects when a
 * program is not installed and its package cannot be fetched: a test that needs it then fails.
 */
export async function debianPrograms<Name extends string>(
  ...names: readonly Name[]
): Promise<Readonly<Record<Name, DebianProgram>>> {
  const cache = join(resolve(process.env["DEVICE_PAYMENTS_CACHE_DIR"] || join(CHECKOUT, ".cache")), "debian-programs");
  const root = join(cache, names.join("-"));
  if (names.some((name) => find(name, root) === undefined)) {
    await fetchInto(root, names).catch((cause: unknown) => {
      const all = names.join(", ");
      throw new Error(`Tests need ${all}, and the packages could not be fetched: install them.`, { cause });
    });
  }
  const found = names.map((name) => {
    const program = find(name, root);
    if (program === undefined) throw new Error(`The package ${name} has no program ${name}.`);
    return [name, program] as const;
  });
  return Object.fromEntries(found) as Record<Name, DebianProgram>;
}

function find(name: string, root: string): DebianProgram | undefined {
  const onPath = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const installed = [...onPath, ...SYSTEM_FOLDERS].map((folder) => join(folder, name)).find(existsSync);
  if (installed !== undefined) return { path: installed, libraries: "" };
  const path = ["usr/sbin", "usr/bin"].map((folder) => join(root, folder, name)).find(existsSync);
  return path === undefined ? undefined : { path, libraries: libraryFolders(root).join(delimiter) };
}

/** Debian keeps libraries in a folder named by the machine's kind, such as `usr/lib/x86_64-linux-gnu`. */
function libraryFolders(root: string): string[] {
  const folders = ["usr/lib", "lib"].map((folder) => join(root, folder)).filter(existsSync);
  return folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.includes("-linux-gnu"))
      .map((name) => join(folder, name)),
  );
}

/** Keeps the existing folder when another test file has fetched the same programs meanwhile and runs them from there. */
function moveTo(root: string, unpacked: string, names: readonly string[]): void {
  try {
    renameSync(unpacked, root);
  } catch {
    if (names.every((name) => find(name, root) !== undefined)) return;
    rmSync(root, { recursive: true, force: true });
    renameSync(unpacked, root);
  }
}

async function fetchInto(root: string, names: readonly string[]): Promise<void> {
  process.stderr.write(`Fetching ${names.join(", ")} from this system's package archive …\n`);
  mkdirSync(join(root, ".."), { recursive: true });
  const unpacked = mkdtempSync(join(root, "..", "unpack-"));
  try {
    await withApt({ environment: process.env }, async (apt) => {
      await apt.get("update");
      // Downloads what an installation would download: the packages, and the libraries that the machine lacks.
      await apt.get(
        "install",
        "--download-only",
        "--no-install-recommends",
        ...names.map((name) => PACKAGES[name] ?? name),
      );
      for (const archive of apt.packages()) await execFileAsync("dpkg-deb", ["-x", archive, unpacked]);
    });
    // The folder is renamed when it is complete, so that an interrupted run leaves no incomplete program.
    moveTo(root, unpacked, names);
  } finally {
    rmSync(unpacked, { recursive: true, force: true });
  }
}
