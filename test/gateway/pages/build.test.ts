/** The build of the pages: small, with hashed names, for old browsers, without code of the services, and never stale. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import { buildPages, bundle, manifestIn } from "../../../gateway/web/build.ts";
import { BUILT_PAGES, PAGES, type PageName } from "../../../gateway/web/page-names.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const SOURCE = fileURLToPath(new URL("../../../gateway/web/", import.meta.url));
const BUILT = fileURLToPath(BUILT_PAGES);
const DEVICE_KIT = fileURLToPath(new URL("../../../clients/device-kit/", import.meta.url));
const CURRENCIES = join(SOURCE, "..", "..", "machines", "currencies.ts");

/** The most bytes of all scripts that a page loads before its first paint, compressed with gzip. */
const MOST_BYTES: Readonly<Record<PageName, number>> = {
  display: 20 * 1_024,
  till: 40 * 1_024,
  back: 80 * 1_024,
  reconcile: 80 * 1_024,
  start: 40 * 1_024,
};

/**
 * Functions that Chrome 71, Safari 12.1 or Firefox 69 do not have. esbuild replaces new syntax, but not new functions. In
 * minified scripts, only its name identifies a method.
 */
const TOO_NEW =
  /\.(?:at|flat|replaceAll|toSorted|toReversed|toSpliced|findLast|hasOwn|allSettled|fromEntries|matchAll|groupBy|randomUUID)\(|\bstructuredClone\(|AbortSignal\.(?:timeout|any)|withResolvers|\bBigInt\b|\breplaceChildren\b|RelativeTimeFormat|ResizeObserver/g;

const builtFiles = () => Object.entries(manifestIn(BUILT)?.files ?? {});
const textOf = (path: string): string => readFileSync(join(BUILT, manifestIn(BUILT)?.files[path]?.file ?? ""), "utf8");

describe("a page's scripts", () => {
  it.each(PAGES)("%s: within the limit, and stored compressed", (page) => {
    const scripts = manifestIn(BUILT)?.scripts[page] ?? [];
    const sizes = scripts.map((path) => gzipSync(textOf(path), { level: 9 }).length);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(MOST_BYTES[page]);
    for (const path of scripts) {
      const compressed = readFileSync(join(BUILT, `${manifestIn(BUILT)?.files[path]?.file}.gz`));
      expect(compressed.length).toBe(gzipSync(textOf(path), { level: 9 }).length);
    }
  });

  it("all pages: only sources of the pages, Preact and the small libraries of the pages", async () => {
    const { metafile } = await bundle();
    const inputs = Object.keys(metafile.inputs);
    const packages = new Set(inputs.flatMap((path) => /node_modules\/((?:@[\w-]+\/)?[\w.-]+)\//.exec(path)?.[1] ?? []));
    const allowed = ["preact", "@preact/signals", "@preact/signals-core", "preact-iso", "uplot", "uqr"];
    expect([...packages].filter((name) => !allowed.includes(name))).toEqual([]);
    // Paths are relative to gateway/web: paths outside begin with two dots. The display runs the device kit.
    const outside = inputs.filter((path) => !path.includes("node_modules/") && path.startsWith(".."));
    const ofKit = outside.filter((path) => path.startsWith("../../clients/device-kit/"));
    // All share one table of currencies. With another table, a page could show a hundredth of an amount, or a hundred times it.
    expect(outside.filter((path) => !ofKit.includes(path))).toEqual(["../../machines/currencies.ts"]);
  });

  it("all pages: no function that the oldest browsers lack", () => {
    for (const [path] of builtFiles().filter(([name]) => name.endsWith(".js"))) {
      const script = textOf(path);
      // The router of the back office uses this function, so its scripts contain a replacement (`old-browsers.ts`).
      const isReplaced = /Object\.assign\(Object,\{fromEntries:/.test(script);
      const used = (script.match(TOO_NEW) ?? []).filter((name) => !(isReplaced && name === ".fromEntries("));
      expect(used, path).toEqual([]);
    }
  });
});

describe("a page's HTML", () => {
  it.each(PAGES)("%s: names hashed files of this build, and contains no inline script or style", (page) => {
    const html = textOf(`/${page}/`);
    const names = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) {
      expect(manifestIn(BUILT)?.files[name], name).toBeDefined();
      if (name.startsWith("/assets/")) expect(name).toMatch(/^\/assets\/[\w-]+\.[A-Z0-9]{8}\.\w+$/);
    }
    expect(html).not.toMatch(/<style|style=|<script>|\son\w+=/);
  });
});

describe("a build of the pages", () => {
  const folder = temporaryFolder("pages");
  afterAll(() => folder.remove());

  it("unchanged sources: the build is kept; one changed source: it is made again", async () => {
    const source = join(folder.path, "gateway", "web");
    cpSync(DEVICE_KIT, join(folder.path, "clients", "device-kit"), { recursive: true });
    cpSync(CURRENCIES, join(folder.path, "machines", "currencies.ts"));
    cpSync(SOURCE, source, { recursive: true, filter: (path) => !path.startsWith(join(BUILT, "/")) });
    const options = { source, folder: join(source, "dist") };
    expect(await buildPages(options)).toBe(true);
    const first = manifestIn(options.folder);
    expect(await buildPages(options)).toBe(false);
    const words = join(source, "till", "words.ts");
    writeFileSync(words, readFileSync(words, "utf8").replace("Kasse", "Kassenplatz"));
    expect(await buildPages(options)).toBe(true);
    const second = manifestIn(options.folder);
    expect(second?.scripts.till).not.toEqual(first?.scripts.till);
    expect(second?.scripts.display).toEqual(first?.scripts.display);
    const currencies = join(folder.path, "machines", "currencies.ts");
    writeFileSync(currencies, readFileSync(currencies, "utf8").replace("BIF: 0", "BIF: 1"));
    expect(await buildPages(options)).toBe(true);
  });
});
