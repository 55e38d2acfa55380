import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { freePort } from "./embedded/free-port.ts";
import { listenError } from "./port-check.ts";

const portsSchema = z.record(z.string(), z.int().min(1).max(65_535));

/**
 * A free port on this machine that the next start takes again: what was given out with it, such as a QR code that a guest
 * has on the phone, is still good then. It is stored in `ports.json` of the data folder. When another process listens on it by
 * now, or the file is damaged, another one is chosen and kept.
 */
export async function keptPort(dataDir: string, name: string): Promise<number> {
  const path = join(dataDir, "ports.json");
  const ports = read(path);
  const known = ports[name];
  if (known !== undefined && (await listenError("127.0.0.1", known)) === undefined) return known;
  const port = await freePort();
  // Written beside and renamed, so that a crash leaves the old file or the new one, never half of one.
  writeFileSync(`${path}.new`, `${JSON.stringify({ ...ports, [name]: port }, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return port;
}

function read(path: string): Readonly<Record<string, number>> {
  try {
    return portsSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return {};
  }
}
