import { spawn } from "node:child_process";
import { constants } from "node:os";

/** How a program ended, and what it printed where that was collected. */
interface CommandResult {
  readonly code: number;
  readonly output: string;
}

/**
 * Runs a program of node_modules/.bin (which bootstrap has put first on PATH) and resolves when it has ended. It prints to
 * our output as it goes, or what it prints is `collected`. It is ended together with this process.
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
      process.stderr.write(`${command} cannot be run: ${error.message}.\n`);
      finish(1);
    });
    // Not at its exit: what it has printed may not have been read by then.
    child.once("close", (code, signal) => finish(signal === null ? (code ?? 1) : 128 + constants.signals[signal]));
  });
}
