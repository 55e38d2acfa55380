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

/** CPU time of a process and of its children so far, in microseconds: PostgreSQL has one process per connection. */
export function familyCpuTimeUs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  return cpuTimeUs(pid) + children.reduce((sum, child) => sum + cpuTimeUs(child), 0);
}
