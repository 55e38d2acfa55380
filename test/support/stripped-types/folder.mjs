/** Where the text of a module without its types is kept for a run of tests: by what its text is, and by who stripped it. */
import { hash } from "node:crypto";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "..", "..", "..", "node_modules", ".cache", "stripped-types", process.version);

export const strippedTypesFolder = FOLDER;

export const strippedTypesFile = (text) => join(FOLDER, hash("sha256", text));
