/** `docs/conformance.md`: a part that people write, and a table that is generated from the contract and the checks. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CHECKS } from "./checks.ts";
import { coverageTable } from "./contract.ts";

const DOCS = join(import.meta.dirname, "..", "..", "docs");
/** The text after this heading is generated. */
const HEADING = "## Which check holds which sentence\n";

/** The path of the document, and its up-to-date text. */
export function conformanceDocument(): { readonly path: string; readonly text: string } {
  const path = join(DOCS, "conformance.md");
  const [byHand] = readFileSync(path, "utf8").split(HEADING);
  const table = coverageTable(readFileSync(join(DOCS, "contract.md"), "utf8"), CHECKS);
  return { path, text: `${byHand ?? ""}${HEADING}\n${table}` };
}
