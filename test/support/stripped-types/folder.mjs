/** Where a run of tests keeps modules without their types. The Node version and the hash of the module's text name the file. */
import { hash } from "node:crypto";
import { join } from "node:path";

export const strippedTypesFolder = join(
  import.meta.dirname,
  "..",
  "..",
  "..",
  "node_modules",
  ".cache",
  "stripped-types",
  process.version,
);

export const strippedTypesFile = (text) => join(strippedTypesFolder, hash("sha256", text));
