/** Loaded before the programs that a test starts: they read what `strip.mjs` has stripped; all else is as without it. */
import { readFileSync } from "node:fs";
import module from "node:module";
import { fileURLToPath } from "node:url";
import { strippedTypesFile } from "./folder.mjs";

// Tests of the bootstrap run an older Node, which has no hooks and no need of them.
module.registerHooks?.({
  load(url, context, nextLoad) {
    if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context);
    try {
      const source = readFileSync(strippedTypesFile(readFileSync(fileURLToPath(url), "utf8")), "utf8");
      return { format: "module", source, shortCircuit: true };
    } catch {
      return nextLoad(url, context);
    }
  },
});
