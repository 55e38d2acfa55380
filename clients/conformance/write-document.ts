/** `npm run coverage`: writes the table of `docs/conformance.md`, after a change of the contract or of the checks. */
import { writeFileSync } from "node:fs";
import { conformanceDocument } from "./document.ts";

const { path, text } = conformanceDocument();
writeFileSync(path, text);
