import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { UserError } from "../services/runtime/user-error.ts";

/** Enough for a password or a token. */
const SECRET_BYTES = 24;
const secretsSchema = z.record(z.string(), z.string());

/** Generated secrets of one data folder, kept in `secrets.json` (mode 0600), so that a restart finds the same ones. */
export interface Secrets {
  /** The secret of that name, so many random bytes as base64url (24 by default); made and stored at its first use. */
  value: (name: string, bytes?: number) => string;
}

/** Opens the secrets of a data folder. Throws UserError `secrets_unreadable` when the file is damaged. */
export function openSecrets(dataDir: string): Secrets {
  const path = join(dataDir, "secrets.json");
  const secrets = read(path);
  const value = (name: string, bytes: number = SECRET_BYTES): string => {
    const known = secrets[name];
    if (known !== undefined) return known;
    const made = randomBytes(bytes).toString("base64url");
    secrets[name] = made;
    // Written beside and renamed, so that a crash leaves the old file or the new one, never half of one.
    writeFileSync(`${path}.new`, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
    return made;
  };
  return { value };
}

function read(path: string): Record<string, string> {
  try {
    return secretsSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    throw new UserError(`The secrets in ${path} cannot be read; restore that file or remove the whole data folder.`, {
      code: "secrets_unreadable",
      cause: error,
    });
  }
}
