import { spawn } from "node:child_process";
import { constants } from "node:os";
import { delimiter, join } from "node:path";
import { PINNED_NODE } from "./dependencies.mjs";
import { SetupError } from "./setup-error.mjs";

/** Ctrl-C reaches this process twice under npm: from the terminal, and again from npm, which forwards it. Signals this close together are one. */
const SAME_SIGNAL_MS = 1_000;
/** How often to see whether npm is still there; a killed npm cannot say good-bye. */
const PARENT_CHECK_MS = 1_000;

/**
 * Runs a .ts file on the pinned Node and returns its exit code. The target runs in a process group of its own, so that a
 * signal reaches it exactly once, from here; when this process is killed, the target sees its IPC channel close and stops.
 * @param {{ checkout: string, target: string, args: string[] }} options
 * @returns {Promise<number>}
 */
export function runTarget({ checkout, target, args }) {
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
