/** Counts the open connections of each address, and finds the limit of open files. */
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { addressBlock } from "../../services/bus/address-block.ts";
import { addressText } from "./client-address.ts";

/**
 * Counts the connections of each address. The server reports the address of a connection that opens, but not of one that closes.
 * So the minimum for an address is: the connections that it opened, minus all that any address closed. A recount from the
 * kernel's table of connections makes the numbers exact again.
 */
export class AddressCounts {
  #opened = new Map<string, number>();
  #closed = 0;
  #isCounting = false;
  /** Whether connections were opened during a recount: the recount may lack them. */
  #hasMissed = false;

  /** The number of addresses with a count. */
  get size(): number {
    return this.#opened.size;
  }

  /** False when a recount would change something. */
  get isExact(): boolean {
    return this.#closed === 0 && !this.#hasMissed;
  }

  /** The minimum number of open connections of the address. */
  atLeast(block: string): number {
    return Math.max(0, this.atMost(block) - this.#closed);
  }

  /** The maximum number of open connections of the address, without a few that were opened during a recount. */
  atMost(block: string): number {
    return this.#opened.get(block) ?? 0;
  }

  opened(block: string): void {
    this.#opened.set(block, this.atMost(block) + 1);
    this.#hasMissed ||= this.#isCounting;
  }

  /** Counts a closed connection whose address is not known yet, or never will be. */
  closed(): void {
    this.#closed += 1;
  }

  /** Assigns the connection that was just closed to its address. */
  closedOf(block: string): void {
    this.#closed = Math.max(0, this.#closed - 1);
    const left = this.atMost(block) - 1;
    if (left > 0) this.#opened.set(block, left);
    else this.#opened.delete(block);
  }

  /** Resets the counts: no connection is open. */
  clear(): void {
    this.#opened.clear();
    this.#closed = 0;
  }

  /** Replaces all numbers by the counts of `read`. Does nothing while another recount runs. */
  async recount(read: () => Promise<ReadonlyMap<string, number>>): Promise<void> {
    if (this.#isCounting) return;
    this.#isCounting = true;
    this.#hasMissed = false;
    const closedBefore = this.#closed;
    const counts = new Map(await read());
    this.#isCounting = false;
    // Connections that were closed during the recount: their addresses are still unknown.
    this.#closed = Math.max(0, this.#closed - closedBefore);
    this.#opened = counts;
  }
}

/** The kernel's tables of TCP connections (Linux). */
const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"] as const;
/** The states of a connection that this end has not closed: established, or closed only by the client. */
const OPEN_STATES: ReadonlySet<string> = new Set(["01", "08"]);
const WORD_DIGITS = 8;

/** Connections to one port of this machine, by the key of their address. Undefined where the kernel has no such table. */
export async function connectionsByAddress(
  localPort: number,
  keyOf: (address: string) => string = addressBlock,
): Promise<Map<string, number> | undefined> {
  const tables = await Promise.all(TABLES.map((path) => readFile(path, "latin1").catch(() => undefined)));
  if (tables[0] === undefined) return undefined;
  const byRemote = new Map<string, number>();
  for (const table of tables) if (table !== undefined) countRemotes(table, localPort, byRemote);
  const counts = new Map<string, number>();
  for (const [remote, count] of byRemote) {
    const key = keyOf(addressText(bytesOf(remote)));
    counts.set(key, (counts.get(key) ?? 0) + count);
  }
  return counts;
}

/** A line is `sl: local:port remote:port state …`, in hexadecimal digits. */
function countRemotes(table: string, localPort: number, counts: Map<string, number>): void {
  const port = localPort.toString(16).toUpperCase().padStart(4, "0");
  for (let at = table.indexOf("\n") + 1; at > 0 && at < table.length; at = table.indexOf("\n", at) + 1) {
    const localEnd = table.indexOf(":", table.indexOf(":", at) + 1);
    const remoteAt = localEnd + 1 + port.length + 1;
    const remoteEnd = table.indexOf(":", remoteAt);
    const stateAt = remoteEnd + 1 + port.length + 1;
    if (!table.startsWith(port, localEnd + 1) || !OPEN_STATES.has(table.slice(stateAt, stateAt + 2))) continue;
    const remote = table.slice(remoteAt, remoteEnd);
    counts.set(remote, (counts.get(remote) ?? 0) + 1);
  }
}

/** The kernel writes an address as 32-bit words, each in the byte order of the machine. */
function bytesOf(remote: string): Uint8Array {
  const words = remote.match(new RegExp(`.{${WORD_DIGITS}}`, "g")) ?? [];
  const numbers = Uint32Array.from(words, (word) => Number.parseInt(word, 16));
  return new Uint8Array(numbers.buffer);
}

/** How many files this process may have open, after Node has raised the limit. A connection is one file. Undefined: no limit. */
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

/** On other systems Node's report has the limit. The report takes tens of milliseconds, once at the start. */
function limitOfReport(): unknown {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  return userLimits?.open_files?.soft;
}
