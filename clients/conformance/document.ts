/** `docs/conformance.md`: what is written by hand, and the table that is made from the contract and the checks. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CHECKS } from "./checks.ts";
import { coverageTable } from "./contract.ts";

const DOCS = join(import.meta.dirname, "..", "..", "docs");
/** What follows this heading is generated. */
const HEADING = "## Which check holds which sentence\n";

/** The document as it should be. */
export function conformanceDocument(): { readonly path: string; readonly text: string } {
  const path = join(DOCS, "conformance.md");
  const [byHand] = readFileSync(path, "utf8").split(HEADING);
  const table = coverageTable(readFileSync(join(DOCS, "contract.md"), "utf8"), CHECKS);
  return { path, text: `${byHand ?? ""}${HEADING}\n${table}` };
}
