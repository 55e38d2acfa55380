/** Node loads this file before a program that a test starts, and then runs the bundle of `bundle.ts` instead of the program. */
import { existsSync } from "node:fs";
import module from "node:module";

const { search } = new URL(import.meta.url);
const checkout = new URL("../../../", import.meta.url).href;
const bundles = new URL(`node_modules/.cache/bundled-programs/${search.slice(1)}/`, checkout).href;

// Tests of the bootstrap run an older Node, which has no hooks and does not need them.
module.registerHooks?.({
  load(url, context, nextLoad) {
    if (!url.startsWith(checkout) || !url.endsWith(".ts")) return nextLoad(url, context);
    const bundle = `${bundles}${url.slice(checkout.length, -".ts".length)}.mjs`;
    if (!existsSync(new URL(bundle))) return nextLoad(url, context);
    return { format: "module", source: `import ${JSON.stringify(bundle)};`, shortCircuit: true };
  },
});
