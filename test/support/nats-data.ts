/**
 * A power cut at nats-server: it writes its files through once in a while, and what it acknowledged since is gone.
 *
 *   const copy = await copyData(nats);       // what is on the disk
 *   …                                        // what is acknowledged now will be lost
 *   await comeBackWith(nats, copy);          // SIGKILL, the copy in place of the data, started again on the same port
 */
import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { TestServer } from "./servers.ts";

/** JetStream's own folder below the server's. */
const STORE = "jetstream";
/** The server writes a new message to its file within milliseconds, though not through to the disk. */
const WRITTEN_MS = 300;

let copies = 0;

/** Copies the data of a server that stands still meanwhile. Returns the copy's folder, which is removed with the server. */
export async function copyData(nats: TestServer): Promise<string> {
  await delay(WRITTEN_MS);
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
