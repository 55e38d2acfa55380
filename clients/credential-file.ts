/** Where a device keeps its credential between two starts: one JSON file that only its owner can read. */
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { DeviceStopped } from "./device-error.ts";

const credentialSchema = z.object({ device_id: z.int(), credential: z.string().min(1) });
export type StoredCredential = z.infer<typeof credentialSchema>;

/**
 * The stored credential, or undefined when there is none yet. A damaged file counts as none when `onDamaged` is given,
 * which is told of it. Throws `DeviceStopped` when the file cannot be used.
 */
export async function loadCredential(path: string, onDamaged?: () => void): Promise<StoredCredential | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new DeviceStopped(`The credential file ${path} cannot be read.`, { cause: error });
  }
  // A copy or a restored backup may have come back readable for everybody.
  await chmod(path, 0o600);
  try {
    return credentialSchema.parse(JSON.parse(text));
  } catch (error) {
    if (onDamaged !== undefined) {
      onDamaged();
      return undefined;
    }
    throw new DeviceStopped(`The credential file ${path} is damaged; delete it and enroll again.`, { cause: error });
  }
}

/** Writes beside and renames, so that a crash leaves the old or the new credential, never half of one. */
export async function saveCredential(path: string, stored: StoredCredential): Promise<void> {
  const temporary = `${path}.${process.pid}.new`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(temporary, `${JSON.stringify(stored)}\n`, { mode: 0o600, flush: true });
    await rename(temporary, path);
  } catch (error) {
    throw new DeviceStopped(`The credential file ${path} cannot be written.`, { cause: error });
  }
}
