import { spawn } from "node:child_process";
import { constants } from "node:os";

/** The exit code of a program, and its output when it was `collected`. */
interface CommandResult {
  readonly code: number;
  readonly output: string;
}

/**
 * Runs a program of node_modules/.bin, which the bootstrap has put first on PATH, and resolves when the program has ended.
 * Its output goes to our output (`shown`) or into the result (`collected`). It is stopped when this process is stopped.
 */
export function runCommand(
  command: string,
  args: string[],
  options: { readonly output: "shown" | "collected" } = { output: "shown" },
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: options.output === "shown" ? "inherit" : ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        output += chunk;
      });
    }
    const forward = (signal: NodeJS.Signals) => child.kill(signal);
    const end = () => child.kill("SIGTERM");
    process.on("SIGINT", forward).on("SIGTERM", forward).on("disconnect", end);
    const finish = (code: number) => {
      process.off("SIGINT", forward).off("SIGTERM", forward).off("disconnect", end);
      resolve({ code, output });
    };
    child.once("error", (error) => {
      process.stderr.write(`Cannot run ${command}: ${error.message}.\n`);
      finish(1);
    });
    // Not on `exit`: at that moment we may not have read all of the program's output.
    child.once("close", (code, signal) => finish(signal === null ? (code ?? 1) : 128 + constants.signals[signal]));
  });
}
