/** Loaded before the programs that a test starts: instead of a program it starts the bundle that `bundle.ts` has made of it. */
import { existsSync } from "node:fs";
import module from "node:module";

const { search } = new URL(import.meta.url);
const checkout = new URL("../../../", import.meta.url).href;
const bundles = new URL(`node_modules/.cache/bundled-programs/${search.slice(1)}/`, checkout).href;

// Tests of the bootstrap run an older Node, which has no hooks and no need of them.
module.registerHooks?.({
  load(url, context, nextLoad) {
    if (!url.startsWith(checkout) || !url.endsWith(".ts")) return nextLoad(url, context);
    const bundle = `${bundles}${url.slice(checkout.length, -".ts".length)}.mjs`;
    if (!existsSync(new URL(bundle))) return nextLoad(url, context);
    return { format: "module", source: `import ${JSON.stringify(bundle)};`, shortCircuit: true };
  },
});
