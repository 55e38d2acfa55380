/** CPU time of a process from the kernel's scheduler, in nanoseconds: `ps` and `/proc/<pid>/stat` only count steps of 10 ms. */
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
export const residentBytes = (pid: number): number => statusBytes(pid, /^VmRSS:\s+(\d+) kB$/m);

/** The maximum resident memory since the start of the program, in bytes (Linux). */
export const peakResidentBytes = (pid: number): number => statusBytes(pid, /^VmHWM:\s+(\d+) kB$/m);

function statusBytes(pid: number, line: RegExp): number {
  const match = line.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(match?.[1] ?? Number.NaN) * 1_024;
}

/** Linux counts the time of children that have ended in steps of a hundredth of a second. */
const TICK_US = 10_000;

/**
 * CPU time of a process and of its children so far, in microseconds. It includes children that have ended: PostgreSQL has one
 * process per connection, and starts its autovacuum from time to time.
 */
export function familyCpuTimeUs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  return cpuTimeUs(pid) + endedChildrenUs(pid) + children.reduce((sum, child) => sum + timeIfThere(child), 0);
}

function endedChildrenUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name is in parentheses and may contain any character; cutime and cstime are the 14th and 15th field after it.
  const [userTicks, systemTicks] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(13, 15);
  return (Number(userTicks) + Number(systemTicks)) * TICK_US;
}

/** The CPU time of a child process. It may end during the read. */
function timeIfThere(pid: number): number {
  try {
    return cpuTimeUs(pid);
  } catch {
    return 0;
  }
}
