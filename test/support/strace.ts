/** strace for tests that prove the order of system calls. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type DebianProgram, debianPrograms } from "./debian-programs.ts";

const PROBE_MS = 10_000;

/**
 * A strace that can trace here; its libraries are for it alone, not for the program that it traces. Rejects with a sentence
 * when there is none: a proof that was not made is no proof.
 */
export async function findStrace(): Promise<DebianProgram> {
  const { strace } = await debianPrograms("strace");
  await promisify(execFile)(strace.path, ["-f", "-o", "/dev/null", "-e", "trace=fsync", "true"], {
    env: { ...process.env, LD_LIBRARY_PATH: strace.libraries },
    timeout: PROBE_MS,
  }).catch((cause: unknown) => {
    throw new Error(`${strace.path} cannot trace a process here: allow ptrace for this user or container.`, { cause });
  });
  return strace;
}
