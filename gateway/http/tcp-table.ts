/** The kernel's table of TCP connections (Linux), for the addresses that are connected to one port of this machine. */
import { readFile } from "node:fs/promises";
import { addressBlock } from "../../services/bus/address-block.ts";
import { addressText } from "./client-address.ts";

const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"] as const;
/** Open at this end: established, and those whose client has closed already. */
const OPEN_STATES: ReadonlySet<string> = new Set(["01", "08"]);
const WORD_DIGITS = 8;

/** Connections by address, as `addressBlock` counts them; undefined where the kernel has no such table. */
export async function connectionsByAddress(localPort: number): Promise<Map<string, number> | undefined> {
  const tables = await Promise.all(TABLES.map((path) => readFile(path, "latin1").catch(() => undefined)));
  if (tables[0] === undefined) return undefined;
  const byRemote = new Map<string, number>();
  for (const table of tables) if (table !== undefined) countRemotes(table, localPort, byRemote);
  const counts = new Map<string, number>();
  for (const [remote, count] of byRemote) {
    const block = addressBlock(addressText(bytesOf(remote)));
    counts.set(block, (counts.get(block) ?? 0) + count);
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
