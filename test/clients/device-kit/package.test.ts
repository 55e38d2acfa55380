/** The package of the device kit: small, without dependencies, and built for Chrome 69 and Node 18. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPackage, bundle, entries } from "../../../clients/device-kit/build.ts";
import { ERROR_CODES } from "../../../clients/device-kit/error-codes.ts";
import { errorCodesOf } from "../../../gateway/http/documents/error-replies.ts";
import { routes } from "../../../gateway/routes.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";

const ROOT = join(import.meta.dirname, "..", "..", "..");
const KIT = join(ROOT, "clients", "device-kit");
const DISPLAY_MAX_BYTES = 6 * 1_024;
/** Functions that Chrome 69 or Node 18 does not have, and that a bundler does not add. */
const NEWER =
  /\.replaceAll\(|\.at\(|\.flat\(|\.findLast|\bglobalThis\b|structuredClone|queueMicrotask|AbortSignal\.(?:any|timeout)|withResolvers|allSettled|Promise\.any|fromEntries|randomUUID|matchAll|hasOwn|\?\.|\?\?/;
const text = (path: string): string => readFileSync(path, "utf8");
const sources = readdirSync(KIT, { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts") && file !== "build.ts" && !file.startsWith("samples"),
);

let folder: TemporaryFolder;
/** The folder of the package, as a user installs it. */
let installed: string;
beforeAll(async () => {
  folder = temporaryFolder("kit");
  installed = join(folder.path, "node_modules", "device-kit");
  await buildPackage(installed);
});
afterAll(() => folder.remove());

describe("the package of the device kit", () => {
  it("the display's bundle: 6 KB at most after gzip", async () => {
    const alone = join(folder.path, "display");
    await bundle(["display"], alone);
    const code = text(join(alone, "display.js"));
    expect(JSON.parse(text(join(alone, "package.json")))).toEqual({ type: "module" });
    expect(code).not.toMatch(/\bimport\b/);
    expect(gzipSync(code, { level: 9 }).length).toBeLessThanOrEqual(DISPLAY_MAX_BYTES);
  });

  it("the source files: import only one another; the file storage also imports Node", () => {
    expect(sources.length).toBeGreaterThan(15);
    const foreign = sources.flatMap((file) =>
      [...text(join(KIT, file)).matchAll(/\bfrom "([^"]+)"/g)]
        .map(([, specifier = ""]) => `${file} ${specifier}`)
        .filter((line) => !/^\S+ \.\/[\w-]+\.ts$|^storage\/\S+ \.\.\/[\w-]+\.ts$|^storage\/file\.ts node:/.test(line)),
    );
    expect(foreign).toEqual([]);
    const { dependencies, peerDependencies } = JSON.parse(text(join(KIT, "package.json"))) as Record<string, unknown>;
    expect([dependencies, peerDependencies]).toEqual([undefined, undefined]);
  });

  it("the built code: uses nothing that is newer than Chrome 69 and Node 18", () => {
    const built = readdirSync(join(installed, "dist"), { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith(".js"),
    );
    expect(built.length).toBeGreaterThanOrEqual(entries().length);
    for (const file of built) expect(text(join(installed, "dist", file)), file).not.toMatch(NEWER);
    for (const newer of ["a?.b", "a??b", "x.replaceAll(1)", "AbortSignal.any([])"]) expect(newer).toMatch(NEWER);
  });

  it("the built folder: has the rules and the golden traces, for ports of the kit", () => {
    expect(existsSync(join(installed, "SPEC.md"))).toBe(true);
    expect(readdirSync(join(installed, "traces")).length).toBeGreaterThan(0);
  });

  it("the build command without a folder, or with an option: prints its usage and writes nothing", () => {
    for (const args of [[], ["--help"], ["a", "b"]]) {
      const { status, stderr } = spawnSync(process.execPath, [join(KIT, "build.ts"), ...args], {
        cwd: folder.path,
        encoding: "utf8",
      });
      expect([status, stderr]).toEqual([2, "Usage: npm run device-kit -- FOLDER\n"]);
    }
    expect(readdirSync(folder.path)).not.toContain("--help");
  });

  it("a program that installs the package: runs, and the compiler finds its types", () => {
    for (const name of entries()) expect(existsSync(join(installed, "dist", `${name}.d.ts`)), name).toBe(true);
    const imports = entries().map((name) => `await import("device-kit/${name}");`);
    const run = ["--input-type=module", "--eval", imports.join("\n")];
    execFileSync(process.execPath, run, { cwd: folder.path, stdio: "pipe" });
    const program = `import { companion } from "device-kit/companion";
      import { display } from "device-kit/display";
      import { fileStorage } from "device-kit/storage/file";
      const storage = fileStorage("device.json");
      const baseUrl = "http://127.0.0.1:9";
      export const till = companion({ baseUrl, storage, launch: async ({ amount }, signal) => {
        if (signal.aborted || amount === "") return null;
        return { outcome: "reported_success", provider_reference: "1" };
      } });
      export const screen = display({ baseUrl, storage, render: (shown, { ageMs }) => { if (shown !== null) ageMs.toFixed(); } });
      `;
    writeFileSync(join(folder.path, "program.mts"), program);
    const types = join(folder.path, "node_modules", "@types");
    mkdirSync(types);
    for (const name of ["node"]) symlinkSync(join(ROOT, "node_modules", "@types", name), join(types, name));
    symlinkSync(join(ROOT, "node_modules", "undici-types"), join(folder.path, "node_modules", "undici-types"));
    const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node"];
    execFileSync(join(ROOT, "node_modules", ".bin", "tsc"), [...flags, "program.mts"], {
      cwd: folder.path,
      stdio: "pipe",
    });
    writeFileSync(join(folder.path, "wrong.mts"), program.replace("reported_success", "approved"));
    expect(() =>
      execFileSync(join(ROOT, "node_modules", ".bin", "tsc"), [...flags, "wrong.mts"], {
        cwd: folder.path,
        stdio: "pipe",
      }),
    ).toThrow(/Command failed/);
  });

  it("its error codes: those of the service's answers to a device", () => {
    const wrongPath = ["path_not_found", "trailing_slash_missing", "method_not_allowed"];
    const codes = new Set([...wrongPath, ...routes.filter(({ tag }) => tag === "device").flatMap(errorCodesOf)]);
    expect([...ERROR_CODES].toSorted()).toEqual([...codes].toSorted());
  });
});
