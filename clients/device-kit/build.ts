/**
 * Builds the package, which `npm install FOLDER` installs: JavaScript for Chrome 69 and Node 18, and its types.
 *
 *   npm run device-kit -- FOLDER
 */
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { rolldown } from "rolldown";

const TARGET = ["chrome69", "node18"];
const SOURCE = import.meta.dirname;
const ROOT = join(SOURCE, "..", "..");

interface PackageJson {
  readonly exports: Record<string, { readonly default: string }>;
}
/** The modules that a user of the package can import, for example `storage/file`. */
export function entries(): readonly string[] {
  const { exports } = JSON.parse(readFileSync(join(SOURCE, "package.json"), "utf8")) as PackageJson;
  return Object.keys(exports).map((name) => name.replace("./", ""));
}

export async function bundle(names: readonly string[], folder: string): Promise<void> {
  const input = Object.fromEntries(names.map((name) => [name, join(SOURCE, `${name}.ts`)]));
  const build = await rolldown({ input, external: /^node:/, transform: { target: TARGET } });
  await build.write({
    dir: folder,
    format: "esm",
    minify: true,
    entryFileNames: "[name].js",
    chunkFileNames: "[hash].js",
  });
  await build.close();
  // Node loads a folder's files as modules only with this file.
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
}

function writeTypes(folder: string): void {
  const compiler = join(ROOT, "node_modules", ".bin", "tsc");
  execFileSync(compiler, ["-p", SOURCE, "--outDir", folder], { stdio: ["ignore", "ignore", "inherit"] });
  // `storage/file.ts` is for Node only. The compiler has no types of Node here, so its declaration is written by hand.
  writeFileSync(
    join(folder, "storage", "file.d.ts"),
    'import type { DeviceStorage } from "../record.js";\nexport declare function fileStorage(path: string): DeviceStorage;\n',
  );
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".d.ts")) continue;
    const path = join(folder, file);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(/(from ".*)\.ts"/g, '$1.js"'));
  }
}

/** Writes the package into the folder. */
export async function buildPackage(folder: string): Promise<void> {
  const code = join(folder, "dist");
  await bundle(entries(), code);
  writeTypes(code);
  for (const name of ["package.json", "SPEC.md", "traces"])
    cpSync(join(SOURCE, name), join(folder, name), { recursive: true });
}

if (import.meta.main) {
  const [folder, surplus] = process.argv.slice(2);
  if (folder === undefined || folder.startsWith("-") || surplus !== undefined) {
    process.stderr.write("Usage: npm run device-kit -- FOLDER\n");
    process.exitCode = 2;
  } else {
    await buildPackage(resolve(folder));
    process.stdout.write(`The package is built. Install it in your project with: npm install ${resolve(folder)}\n`);
  }
}
