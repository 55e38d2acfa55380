/** The versions of the suite and of the contract: a certificate names both. */
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

const CONTRACT = join(import.meta.dirname, "..", "..", "docs", "contract.md");

/** A hash of the names and contents of the programs that make the checks. */
function suiteSha256(): string {
  const hash = createHash("sha256");
  for (const name of globSync("**/*.ts", { cwd: import.meta.dirname }).toSorted())
    hash.update(`${name}\n`).update(readFileSync(join(import.meta.dirname, name)));
  return hash.digest("hex");
}

export const SUITE = {
  version: packageJson.version,
  sha256: suiteSha256,
  contractSha256: (): string => createHash("sha256").update(readFileSync(CONTRACT)).digest("hex"),
} as const;
