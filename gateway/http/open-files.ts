/** How many files this process may have open at once; each connection is one. */
import { readFileSync } from "node:fs";

/** The limit that counts, which Node has raised as far as it may; undefined where there is none. */
export function openFileLimit(): number | undefined {
  const limit = Number(limitOfKernel() ?? limitOfReport());
  return Number.isFinite(limit) ? limit : undefined;
}

/** Linux writes `Max open files   1024   524288   files`, or `unlimited`. */
function limitOfKernel(): string | undefined {
  try {
    return /^Max open files +(\S+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
  } catch {
    return undefined;
  }
}

/** Node's own report has it on the other systems; it takes tens of milliseconds, once at start. */
function limitOfReport(): unknown {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  return userLimits?.open_files?.soft;
}
