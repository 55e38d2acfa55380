/** Which suite this is, and which contract it checks: a certificate is bound to both. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

const CONTRACT = join(import.meta.dirname, "..", "..", "docs", "contract.md");

export const SUITE = {
  version: packageJson.version,
  contractSha256: (): string => createHash("sha256").update(readFileSync(CONTRACT)).digest("hex"),
} as const;
