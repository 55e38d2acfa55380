import { spawn } from "node:child_process";
import { constants } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PINNED_NODE, prepareDependencies, SetupError } from "./dependencies.mjs";

/** The checkout: two folders above this file. */
const CHECKOUT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/**
 * Prepares the dependencies, runs the target and exits with the target's exit code.
 * @param {string[]} args the .ts file, relative to the checkout, and its arguments; `--production` before it when the file needs
 *   no package for development
 */
export async function main(args) {
  try {
    const forProduction = args[0] === "--production";
    const [target, ...rest] = forProduction ? args.slice(1) : args;
    if (target === undefined) throw new SetupError("Name the .ts file to run.");
    if (process.platform === "win32") {
      throw new SetupError("Windows is not supported directly; run this inside the Windows Subsystem for Linux.");
    }
    await prepareDependencies(CHECKOUT, { forProduction });
    process.exitCode = await runTarget({ checkout: CHECKOUT, target, args: rest });
  } catch (error) {
    // Set-up has no log file yet, so an unexpected error is reduced to its message and code.
    const detail =
      error instanceof SetupError ? error.message : `Set-up failed: ${error.message} (${error.code ?? "unexpected"}).`;
    process.stderr.write(`${detail}\n`);
    process.exitCode = 1;
  }
}

/** Ctrl-C reaches this process twice under npm: from the terminal, and again from npm, which forwards it. Signals within this time count as one signal. */
const SAME_SIGNAL_MS = 1_000;
/** How often this process checks whether npm is still there; a killed npm cannot notify it. */
const PARENT_CHECK_MS = 1_000;

/**
 * Runs a .ts file on the pinned Node and returns its exit code. The target runs in a separate process group: only this
 * process sends it signals, and each signal once. When this process is killed, the target's IPC channel closes and the
 * target stops.
 * @param {{ checkout: string, target: string, args: string[] }} options
 * @returns {Promise<number>}
 */
function runTarget({ checkout, target, args }) {
  return new Promise((resolve, reject) => {
    const child = spawn(join(checkout, PINNED_NODE), [join(checkout, target), ...args], {
      cwd: checkout,
      stdio: ["inherit", "inherit", "inherit", "ipc"],
      detached: true,
      env: { ...process.env, PATH: `${join(checkout, "node_modules", ".bin")}${delimiter}${process.env.PATH ?? ""}` },
    });
    let lastSignalMs = 0;
    const forward = (signal) => {
      const nowMs = Date.now();
      if (nowMs - lastSignalMs > SAME_SIGNAL_MS) child.kill(signal === "SIGHUP" ? "SIGTERM" : signal);
      lastSignalMs = nowMs;
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, forward);

    const parent = process.ppid;
    const parentCheck = setInterval(() => {
      if (process.env.npm_lifecycle_event === undefined || process.ppid === parent) return;
      clearInterval(parentCheck);
      forward("SIGTERM");
    }, PARENT_CHECK_MS);

    child.on("error", (error) => {
      clearInterval(parentCheck);
      reject(new SetupError(`The pinned Node in node_modules cannot run on this machine (${error.code}).`));
    });
    child.on("exit", (code, signal) => {
      clearInterval(parentCheck);
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
    });
  });
}
