/**
 * Builds the pages: `npm run pages`. Each start and each run of the tests builds them automatically.
 *
 *   gateway/web/<page>/main.tsx ──► dist/assets/<name>.<hash>.js, .css, and .br and .gz of each
 *   gateway/web/page.html       ──► dist/<page>.html with the names of these
 *                                   dist/manifest.json, written last
 *
 * A build of the same sources is kept. Two builds at the same time are safe: they write the same files with the same content.
 */
import { hash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Metafile, type OutputFile } from "esbuild";
import { BUILT_PAGES, type BuildManifest, type BuiltFile, PAGES, type PageName } from "./page-names.ts";

/** The oldest browsers that tills and displays run; Preact 11 supports no older ones. */
const BROWSERS = ["chrome71", "safari12.1", "firefox69"];

/**
 * Safari before 14.1 has a bug when a destructured name shadows another parameter. Because of it, esbuild refuses all
 * destructuring for these browsers. They support the rest of it, so this setting allows it.
 */
const SUPPORTED = { destructuring: true };

const TITLES: Readonly<Record<PageName, string>> = {
  display: "Customer display",
  till: "Till",
  back: "Back office",
  reconcile: "Reconciliation",
  start: "The first minute",
};

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
};

interface BuildOptions {
  readonly source: string;
  readonly folder: string;
}

const HERE: BuildOptions = { source: import.meta.dirname, folder: fileURLToPath(BUILT_PAGES) };
const CHECKOUT = join(import.meta.dirname, "..", "..");

/** Builds the pages, unless a build of the same sources exists. Returns whether it has built. */
export async function buildPages(options: BuildOptions = HERE): Promise<boolean> {
  const sources = hashOfSources(options);
  if (manifestIn(options.folder)?.sources === sources) return false;
  const { metafile, outputFiles } = await bundle(options);
  const files: Record<string, BuiltFile> = {};
  const put = (path: string, file: string, content: Uint8Array | string, hashed: boolean): void => {
    writeWithCompressed(join(options.folder, file), Buffer.from(content));
    files[path] = { file, type: TYPES[extname(file)] ?? "application/octet-stream", hashed };
  };
  makeFolders(options.folder);
  const icon = iconFile(options);
  put(icon.path, icon.file, icon.content, true);
  for (const output of outputFiles) put(pathOf(output), `assets/${basename(output.path)}`, output.contents, true);
  const scripts = Object.fromEntries(PAGES.map((page) => [page, scriptsOf(page, metafile)]));
  for (const page of PAGES) put(`/${page}/`, `${page}.html`, pageHtml(page, options, metafile, icon.path), false);
  for (const extra of await unhashedFiles(options, files, sources)) put(extra.path, extra.file, extra.content, false);
  const manifest = { sources, files, scripts } as BuildManifest;
  writeWhole(join(options.folder, "manifest.json"), Buffer.from(JSON.stringify(manifest, null, 2)));
  prune(options.folder, files);
  return true;
}

export function manifestIn(folder: string): BuildManifest | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as BuildManifest;
  } catch {
    return undefined;
  }
}

/**
 * The hash also covers the package lock, the device kit, which the display runs, and the table of currencies. So another
 * version of a library makes another build.
 */
function hashOfSources({ source, folder }: BuildOptions): string {
  const checkout = join(source, "..", "..");
  const deviceKit = join(checkout, "clients", "device-kit");
  const names = [source, deviceKit]
    .flatMap((root) => readdirSync(root, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.startsWith(join(folder, "/")))
    .toSorted();
  const currencies = join(checkout, "machines", "currencies.ts");
  const contents = [...names, currencies, join(CHECKOUT, "package-lock.json")].filter(existsSync);
  return hash("sha256", contents.map((path) => `${path.slice(source.length)}\n${hashOfFile(path)}\n`).join(""));
}

const hashOfFile = (path: string): string => hash("sha256", readFileSync(path));

/** People move between most pages, so these are bundled together and share files. The display stays one file. */
export async function bundle(options: BuildOptions = HERE) {
  const [display, others] = await Promise.all([
    bundlePages(options, ["display"]),
    bundlePages(
      options,
      PAGES.filter((page) => page !== "display"),
    ),
  ]);
  return {
    metafile: {
      inputs: { ...display.metafile.inputs, ...others.metafile.inputs },
      outputs: { ...display.metafile.outputs, ...others.metafile.outputs },
    },
    outputFiles: [...display.outputFiles, ...others.outputFiles],
  };
}

async function bundlePages({ source, folder }: BuildOptions, pages: readonly PageName[]) {
  return await build({
    entryPoints: pages.map((page) => ({ in: join(source, page, "main.tsx"), out: page })),
    outdir: join(folder, "assets"),
    entryNames: "[name].[hash]",
    chunkNames: "part.[hash]",
    assetNames: "[name].[hash]",
    publicPath: "/assets",
    bundle: true,
    splitting: true,
    format: "esm",
    target: BROWSERS,
    supported: SUPPORTED,
    minify: true,
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "file" },
    nodePaths: [join(CHECKOUT, "node_modules")],
    absWorkingDir: source,
    legalComments: "none",
    metafile: true,
    write: false,
    logLevel: "silent",
  });
}

const pathOf = (output: Pick<OutputFile, "path">): string => `/assets/${basename(output.path)}`;

function entryOf(page: PageName, metafile: Metafile) {
  const found = Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === `${page}/main.tsx`);
  if (found === undefined) throw new Error(`The build has no script of ${page}.`);
  const [name, output] = found;
  return { name, output };
}

/** The page's script and the parts that it imports statically, without the parts that it imports later. */
function scriptsOf(page: PageName, metafile: Metafile): readonly string[] {
  const found = new Set<string>();
  const add = (name: string): void => {
    if (found.has(name)) return;
    found.add(name);
    for (const { path, kind } of metafile.outputs[name]?.imports ?? []) if (kind === "import-statement") add(path);
  };
  add(entryOf(page, metafile).name);
  return [...found].map((name) => pathOf({ path: name }));
}

function pageHtml(page: PageName, { source }: BuildOptions, metafile: Metafile, icon: string): string {
  const [main = "", ...parts] = scriptsOf(page, metafile);
  const { cssBundle } = entryOf(page, metafile).output;
  const install = existsSync(join(source, page, "page.webmanifest"))
    ? [`<link rel="manifest" href="/${page}/manifest.webmanifest" />`]
    : [];
  const links = [
    `<link rel="icon" type="image/svg+xml" href="${icon}" />`,
    ...install,
    ...(cssBundle === undefined ? [] : [`<link rel="stylesheet" href="${pathOf({ path: cssBundle })}" />`]),
    ...parts.map((part) => `<link rel="modulepreload" href="${part}" />`),
    `<script type="module" src="${main}"></script>`,
  ];
  return readFileSync(join(source, "page.html"), "utf8")
    .replaceAll("{{page}}", page)
    .replaceAll("{{title}}", TITLES[page])
    .replace("{{links}}", links.join("\n    "));
}

/** No script imports the icon, so the bundle does not contain it. */
function iconFile({ source }: BuildOptions): ServedFile {
  const content = readFileSync(join(source, "shared", "icon.svg"));
  const name = `icon.${hash("sha256", content).slice(0, 8).toUpperCase()}.svg`;
  return { path: `/assets/${name}`, file: `assets/${name}`, content };
}

interface ServedFile {
  readonly path: string;
  readonly file: string;
  readonly content: Uint8Array | string;
}

/**
 * Files whose names have no hash: `<page>/service-worker.ts`, into which the build writes the names of the files that it
 * stores, and `<page>/page.webmanifest`.
 */
async function unhashedFiles(
  { source, folder }: BuildOptions,
  files: Readonly<Record<string, BuiltFile>>,
  sources: string,
): Promise<readonly ServedFile[]> {
  const found: ServedFile[] = [];
  for (const page of PAGES) {
    const worker = join(source, page, "service-worker.ts");
    if (existsSync(worker)) {
      const html = readFileSync(join(folder, `${page}.html`), "utf8");
      const shell = [`/${page}/`, ...Object.keys(files).filter((path) => html.includes(`"${path}"`))];
      const { outputFiles } = await build({
        entryPoints: [worker],
        bundle: true,
        format: "iife",
        target: BROWSERS,
        supported: SUPPORTED,
        minify: true,
        define: { BUILD: JSON.stringify(sources.slice(0, 12)), SHELL: JSON.stringify(shell) },
        write: false,
        logLevel: "silent",
      });
      const [output] = outputFiles;
      found.push({
        path: `/${page}/service-worker.js`,
        file: `${page}-worker.js`,
        content: output?.contents ?? "",
      });
    }
    const install = join(source, page, "page.webmanifest");
    if (existsSync(install)) {
      const path = `/${page}/manifest.webmanifest`;
      found.push({ path, file: `${page}.webmanifest`, content: readFileSync(install) });
    }
  }
  return found;
}

function makeFolders(folder: string): void {
  for (const path of [folder, join(folder, "assets")]) if (!existsSync(path)) mkdirSync(path);
}

function writeWithCompressed(path: string, content: Buffer): void {
  writeWhole(path, content);
  writeWhole(`${path}.gz`, gzipSync(content, { level: 9 }));
  writeWhole(`${path}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
}

/** A process that reads the file finds the whole file or none. */
function writeWhole(path: string, content: Uint8Array): void {
  const part = `${path}.${process.pid}`;
  writeFileSync(part, content);
  renameSync(part, path);
}

function prune(folder: string, files: Readonly<Record<string, BuiltFile>>): void {
  const kept = new Set(Object.values(files).map(({ file }) => basename(file)));
  for (const name of readdirSync(join(folder, "assets"))) {
    if (!kept.has(name.replace(/\.(?:br|gz)$/, ""))) rmSync(join(folder, "assets", name), { force: true });
  }
}

if (import.meta.main) {
  const startedAtMs = performance.now();
  const isNew = await buildPages();
  const took = `${Math.round(performance.now() - startedAtMs)} ms`;
  process.stdout.write(isNew ? `The pages are built (${took}).\n` : `The pages are built already (${took}).\n`);
}
