/**
 * strace for tests that prove the order of system calls: the machine's own, else the package of its distribution, fetched
 * without root into the cache of the checkout.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { withApt } from "../../deploy/embedded/apt.ts";

const execFileAsync = promisify(execFile);
const CACHE = join(import.meta.dirname, "..", "..", ".cache", "strace");
const PROBE_MS = 10_000;

/** How strace is run here. */
export interface Strace {
  readonly path: string;
  /** For strace alone, not for the program that it traces: where the libraries are that were fetched with it. */
  readonly libraries: string;
}

/** A strace that can trace here. Rejects with a sentence when there is none: a proof that is not made is no proof. */
export async function findStrace(environment: NodeJS.ProcessEnv = process.env, cache = CACHE): Promise<Strace> {
  const onPath = (environment.PATH ?? "").split(delimiter).map((folder) => join(folder, "strace"));
  const found = onPath.find((path) => existsSync(path));
  const strace = found === undefined ? await fetchedStrace(environment, cache) : { path: found, libraries: "" };
  await execFileAsync(strace.path, ["-f", "-o", "/dev/null", "-e", "trace=fsync", "true"], {
    env: { ...environment, LD_LIBRARY_PATH: strace.libraries },
    timeout: PROBE_MS,
  }).catch((cause: unknown) => {
    throw new Error(`${strace.path} cannot trace a process here: allow ptrace for this user or container.`, { cause });
  });
  return strace;
}

async function fetchedStrace(environment: NodeJS.ProcessEnv, cache: string): Promise<Strace> {
  const root = join(cache, "root");
  if (!existsSync(root)) {
    await withApt({ environment }, async (apt) => {
      await apt.get("update");
      // With it come the libraries that it needs and the machine does not have.
      await apt.get("install", "--download-only", "--no-install-recommends", "strace");
      mkdirSync(cache, { recursive: true });
      const unpacked = mkdtempSync(join(cache, "unpack-"));
      for (const archive of apt.packages()) await execFileAsync("dpkg-deb", ["-x", archive, unpacked]);
      // Renamed when complete. Another run may have been faster; its strace is as good.
      if (existsSync(root)) rmSync(unpacked, { recursive: true });
      else renameSync(unpacked, root);
    }).catch((cause: unknown) => {
      throw new Error("strace is needed and could not be fetched; install the package strace.", { cause });
    });
  }
  const folders = ["lib", join("usr", "lib")]
    .map((folder) => join(root, folder))
    .filter((folder) => existsSync(folder));
  const libraries = folders.flatMap((folder) => [folder, ...readdirSync(folder).map((name) => join(folder, name))]);
  return { path: join(root, "usr", "bin", "strace"), libraries: libraries.join(delimiter) };
}
