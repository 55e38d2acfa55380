/** CPU time of a process from the kernel's scheduler, in nanosecond steps: `ps` and `/proc/<pid>/stat` count in 10 ms. */
import { readdirSync, readFileSync } from "node:fs";

/** Time on a CPU of all threads of a process so far, in microseconds (Linux). */
export function cpuTimeUs(pid: number): number {
  let totalNs = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const [onCpuNs] = readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ");
    totalNs += Number(onCpuNs);
  }
  return totalNs / 1_000;
}

/** Resident memory of a process in bytes (Linux). */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(match?.[1] ?? Number.NaN) * 1_024;
}
