/**
 * A nats-server that has lost its newest data: an older copy of its data folder is restored, or a server without
 * `sync_interval: always` loses acknowledged data in a power cut.
 *
 *   const copy = copyData(nats);             // the data on the disk
 *   …                                        // acknowledged data from now on will be lost
 *   await comeBackWith(nats, copy);          // SIGKILL, the copy in place of the data, started again on the same port
 */
import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestServer } from "./servers.ts";

/** JetStream's own folder below the server's. */
const STORE = "jetstream";
let copies = 0;

/**
 * Stops the server, copies its files, which hold all acknowledged data, and lets it continue. Returns the folder of the
 * copy, which is removed with the server.
 */
export function copyData(nats: TestServer): string {
  copies += 1;
  const copy = join(nats.folder, `copy-${copies}`);
  nats.signal("SIGSTOP");
  try {
    cpSync(join(nats.folder, STORE), copy, { recursive: true });
  } finally {
    nats.signal("SIGCONT");
  }
  return copy;
}

/** Kills the server and starts it with this data, or with none. */
export async function comeBackWith(nats: TestServer, copy: string | undefined): Promise<void> {
  await nats.kill9();
  rmSync(join(nats.folder, STORE), { recursive: true });
  if (copy !== undefined && existsSync(copy)) cpSync(copy, join(nats.folder, STORE), { recursive: true });
  await nats.restart();
}
