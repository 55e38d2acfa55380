import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { prepareDependencies } from "./dependencies.mjs";
import { runTarget } from "./run-target.mjs";
import { SetupError } from "./setup-error.mjs";

/** The checkout: two folders above this file. */
const CHECKOUT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");

/**
 * Prepares the dependencies, runs the target and takes over its exit code.
 * @param {string[]} args the .ts file, relative to the checkout, and its arguments
 */
export async function main(args) {
  try {
    const [target, ...rest] = args;
    if (target === undefined) throw new SetupError("Name the .ts file to run.");
    if (process.platform === "win32") {
      throw new SetupError("Windows is not supported directly; run this inside the Windows Subsystem for Linux.");
    }
    await prepareDependencies(CHECKOUT);
    process.exitCode = await runTarget({ checkout: CHECKOUT, target, args: rest });
  } catch (error) {
    // Set-up has no log file yet, so an unexpected error is reduced to its own sentence and code.
    const detail =
      error instanceof SetupError ? error.message : `Set-up failed: ${error.message} (${error.code ?? "unexpected"}).`;
    process.stderr.write(`${detail}\n`);
    process.exitCode = 1;
  }
}
