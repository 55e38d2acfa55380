import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { isRunning, runProgram } from "../support/running-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
/** npm is slow on a busy machine, also when it has nothing to download. */
const NPM_MS = 180_000;

const folder = temporaryFolder("bootstrap");
const project = join(folder.path, "project");
/** A folder for PATH that has only a system's node. */
const tools = join(folder.path, "tools");
const PROJECT = { name: "project", version: "1.0.0" };
const stamp = join(project, "node_modules", ".device-payments-lock");

/** PATH without this checkout's node, as on a machine that has only the system's node. */
const systemPath = (process.env.PATH ?? "")
  .split(":")
  .filter((entry) => !entry.includes("node_modules"))
  .join(":");

function start(args: string[] = [], environment: NodeJS.ProcessEnv = {}) {
  // The programs here do not need the bundles of the test run.
  const { NODE_OPTIONS: _unused, ...run } = process.env;
  const env = { ...run, PATH: systemPath, npm_config_offline: "true", ...environment };
  return runProgram("node", ["deploy/bootstrap.mjs", "target.ts", ...args], { cwd: project, env });
}

/** Expects this exit code of the program; returns its output. */
async function outputOf(exitCode: number, args?: string[], environment?: NodeJS.ProcessEnv): Promise<string> {
  const program = start(args, environment);
  expect(await program.ended, program.output()).toBe(exitCode);
  return program.output();
}

/** Packs a package that npm can install without a network. `npm pack` would take half a second for each package. */
function pack(name: string, version: string, files: Record<string, string>, manifest: object = {}): void {
  const parent = join(folder.path, "packages", `${name}-${version}`);
  const source = join(parent, "package");
  mkdirSync(source, { recursive: true });
  writeFileSync(join(source, "package.json"), JSON.stringify({ name, version, ...manifest }));
  for (const [file, content] of Object.entries(files)) writeFileSync(join(source, file), content);
  execFileSync("tar", ["-czf", join(project, `${name}-${version}.tgz`), "-C", parent, "package"]);
}

function writeManifest(dependencies: Record<string, string>, devDependencies: Record<string, string> = {}): void {
  const allowScripts = { "node@22.0.1": true };
  writeFileSync(
    join(project, "package.json"),
    JSON.stringify({ ...PROJECT, private: true, type: "module", dependencies, devDependencies, allowScripts }),
  );
}

/** Writes package.json and the lock file that npm would make of it. npm would take half a second for this. */
function lock(dependencies: Record<string, string>, devDependencies: Record<string, string> = {}): void {
  writeManifest(dependencies, devDependencies);
  const locked = Object.entries({ ...dependencies, ...devDependencies }).map(([name, resolved]) => {
    const [, file = "", version] = /^file:(.+-([\d.]+)\.tgz)$/.exec(resolved) ?? [];
    const integrity = `sha512-${hash("sha512", readFileSync(join(project, file)), "base64")}`;
    const scripts = name === "node" ? { hasInstallScript: true } : {};
    const dev = name in devDependencies ? { dev: true } : {};
    return [`node_modules/${name}`, { version, resolved, integrity, ...scripts, ...dev }] as const;
  });
  const packages = { "": { ...PROJECT, dependencies, devDependencies }, ...Object.fromEntries(locked) };
  const lockFile = { ...PROJECT, lockfileVersion: 3, requires: true, packages };
  writeFileSync(join(project, "package-lock.json"), JSON.stringify(lockFile, null, 2));
}

/** The working folder of a process. Empty when this user may not read it. */
function workingFolder(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}

/** The id of a process that works inside the project's node_modules, which is an install script. Throws when there is none. */
function processIn(checkout: string): number {
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  const found = pids.find((pid) => workingFolder(pid).startsWith(join(checkout, "node_modules")));
  if (found === undefined) throw new Error("No install script is running.");
  return Number(found);
}

beforeAll(() => {
  mkdirSync(project, { recursive: true });
  mkdirSync(tools);
  writeFileSync(join(tools, "node"), `#!/bin/sh\nexec "${process.execPath}" "$@"\n`);
  chmodSync(join(tools, "node"), 0o755);
  cpSync(join(CHECKOUT, "deploy", "bootstrap"), join(project, "deploy", "bootstrap"), { recursive: true });
  cpSync(join(CHECKOUT, "deploy", "bootstrap.mjs"), join(project, "deploy", "bootstrap.mjs"));
  writeFileSync(
    join(project, "target.ts"),
    `const args: string[] = process.argv.slice(2);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.stdout.write(signal + "\\n"));
process.on("disconnect", () => process.exit(9));
process.stdout.write(JSON.stringify({ node: process.env.PINNED, args }) + "\\n");
setTimeout(() => process.exit(Number(args[1] ?? 0)), Number(args[0] ?? 0));
`,
  );
  // As in the real package, an install script puts the binary in place. Where no script ran, the binary may be missing.
  const place = `const fs = require("node:fs");
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(process.env.INSTALL_SCRIPT_MS ?? 0));
fs.mkdirSync("bin", { recursive: true });
fs.writeFileSync("bin/node", '#!/bin/sh\\n[ "$1" = --version ] && echo v22.0.1 && exit\\nPINNED=yes exec "${process.execPath}" "$@"\\n');
fs.chmodSync("bin/node", 0o755);
`;
  pack("node", "22.0.1", { "place.cjs": place }, { scripts: { preinstall: "node place.cjs" } });
  pack("first", "1.0.0", { "index.js": "" });
  pack("second", "1.0.0", { "index.js": "" });
  lock({ node: "file:node-22.0.1.tgz", first: "file:first-1.0.0.tgz" });
});

afterAll(folder.remove);

describe("the bootstrap", () => {
  test("the first start: it installs, then runs the target on the pinned Node with its arguments and exit code", {
    timeout: NPM_MS,
  }, async () => {
    expect(await outputOf(7, ["0", "7"])).toMatch(
      /^The first start installs about 800 MB .+\nInstalling the dependencies …\nInstalling the dependencies: done after \d+ s\.\n\{"node":"yes","args":\["0","7"\]\}\n$/,
    );
  });

  test("nothing changed: it reaches the target without npm, and prints nothing", async () => {
    expect(await outputOf(0, [], { PATH: tools })).toBe('{"node":"yes","args":[]}\n');
  });

  test("a changed lock file: it installs again", { timeout: NPM_MS }, async () => {
    lock({ node: "file:node-22.0.1.tgz", first: "file:first-1.0.0.tgz", second: "file:second-1.0.0.tgz" });
    expect(await outputOf(0)).toMatch(/^Updating the dependencies …\n/);
    expect(existsSync(join(project, "node_modules", "second"))).toBe(true);
  });

  test("packages that a person has installed from the same lock file: the bootstrap accepts them", async () => {
    rmSync(stamp);
    expect(await outputOf(0)).toBe('{"node":"yes","args":[]}\n');
    expect(existsSync(stamp)).toBe(true);
  });

  test("an operator's installation without packages for development: a command of production runs, and nothing is installed", {
    timeout: NPM_MS,
  }, async () => {
    lock({ node: "file:node-22.0.1.tgz", first: "file:first-1.0.0.tgz" }, { second: "file:second-1.0.0.tgz" });
    const npmPath = { ...process.env, PATH: systemPath, npm_config_offline: "true" };
    execFileSync("npm", ["ci", "--omit=dev"], { cwd: project, env: npmPath, stdio: "ignore" });
    const run = ["deploy/bootstrap.mjs", "--production", "target.ts", "0", "7"];
    const program = runProgram("node", run, { cwd: project, env: { ...npmPath, PATH: tools } });
    expect(await program.ended, program.output()).toBe(7);
    expect(program.output()).toBe('{"node":"yes","args":["0","7"]}\n');
    expect([existsSync(join(project, "node_modules", "second")), existsSync(stamp)]).toEqual([false, false]);
    // Any other command needs the packages for development.
    expect(await outputOf(0)).toMatch(/^Updating the dependencies …\n/);
    expect(existsSync(join(project, "node_modules", "second"))).toBe(true);
  });

  test("a lock file that does not fit package.json: it ends with one sentence", { timeout: NPM_MS }, async () => {
    const before = readFileSync(join(project, "package-lock.json"), "utf8");
    pack("third", "1.0.0", { "index.js": "" });
    const fitting = { node: "file:node-22.0.1.tgz", second: "file:second-1.0.0.tgz" };
    writeManifest({ ...fitting, third: "file:third-1.0.0.tgz" });
    rmSync(join(project, "node_modules"), { recursive: true, force: true });
    const output = await outputOf(1);
    expect(output).toMatch(/\nnpm ci failed: .+ in sync\. .+; the full output is in \.cache\/npm\.log\.\n$/);
    expect(readFileSync(join(project, "package-lock.json"), "utf8")).toBe(before);
    lock(fitting);
  });

  test("an installation that was killed: npm ends at once, and of two starts after it one installs and both run", {
    timeout: NPM_MS,
  }, async () => {
    const killed = start([], { INSTALL_SCRIPT_MS: "15000" });
    await killed.waitFor(/Installing/);
    // The kill comes in the middle, while the install script of the pinned Node runs for `INSTALL_SCRIPT_MS`.
    const npmPid = await vi.waitFor(() => processIn(project), { timeout: 60_000, interval: 20 });
    killed.process.kill("SIGKILL");
    await killed.ended;
    await vi.waitFor(() => expect(isRunning(npmPid)).toBe(false), { timeout: 2_000, interval: 20 });
    const both = [start(), start()];
    expect(await Promise.all(both.map((program) => program.ended))).toEqual([0, 0]);
    const output = both.map((program) => program.output()).join("");
    expect(output.match(/: done after/g)).toHaveLength(1);
    expect(output).toContain("Another start is installing the dependencies; waiting for it.");
  });

  test("scripts are switched off: it applies the patches, installs again when they change, and fetches the pinned Node by name", {
    timeout: NPM_MS,
  }, async () => {
    const manifest = join(project, "package.json");
    const original = readFileSync(manifest, "utf8");
    // Like patch-package: the patch applies once, and another one does not apply to patched files.
    const apply = `const fs = require("node:fs");
const wanted = fs.readFileSync("patches/some.patch", "utf8");
const file = "node_modules/patched";
const is = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : wanted;
if (is !== wanted) process.exit(1);
fs.writeFileSync(file, wanted);
`;
    writeFileSync(join(project, "apply.cjs"), apply);
    writeFileSync(manifest, JSON.stringify({ ...JSON.parse(original), scripts: { postinstall: "node apply.cjs" } }));
    mkdirSync(join(project, "patches"));
    let output = "";
    for (const patch of ["1", "2"]) {
      writeFileSync(join(project, "patches", "some.patch"), patch);
      output = await outputOf(0, [], { npm_config_ignore_scripts: "true" });
      expect(readFileSync(join(project, "node_modules", "patched"), "utf8")).toBe(patch);
    }
    expect(output).toContain("Fetching the pinned Node: done");
    rmSync(join(project, "patches"), { recursive: true });
    writeFileSync(manifest, original);
  });

  test("npm fails: one sentence has the reason and the place of npm's log", { timeout: NPM_MS }, async () => {
    const intact = readFileSync(join(project, "package-lock.json"));
    writeFileSync(
      join(project, "package-lock.json"),
      intact.toString().replaceAll(/"integrity": "sha512-..../g, '"integrity": "sha512-AAAA'),
    );
    const output = await outputOf(1);
    expect(output).toMatch(/\nnpm ci failed: .+; the full output is in \.cache\/npm\.log\.\n$/);
    expect(existsSync(join(project, ".cache", "npm.log"))).toBe(true);
    writeFileSync(join(project, "package-lock.json"), intact);
  });

  test("npm is missing: it ends with one sentence", async () => {
    rmSync(join(project, "node_modules"), { recursive: true, force: true });
    expect((await outputOf(1, [], { PATH: tools })).trim().split("\n").at(-1)).toBe(
      "npm is needed to install the dependencies, and there is none on PATH.",
    );
  });

  test("a person without a home: it installs, and the target runs", { timeout: NPM_MS }, async () => {
    expect(await outputOf(0, [], { HOME: "" })).toContain("Installing the dependencies: done");
  });

  test("npm and the terminal both send a signal: the target gets it exactly once", async () => {
    const program = start(["1500"]);
    await program.waitFor(/args/);
    program.process.kill("SIGINT");
    await program.waitFor(/SIGINT/);
    program.process.kill("SIGINT");
    expect(await program.ended).toBe(0);
    expect(program.output().match(/SIGINT/g)).toHaveLength(1);
  });

  test("the bootstrap is killed: the target ends", async () => {
    const program = start(["20000"]);
    await program.waitFor(/args/);
    const startedMs = performance.now();
    program.process.kill("SIGKILL");
    // The output stays open until the target, which holds it too, has ended.
    expect(await program.ended).toBe("SIGKILL");
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });
});
