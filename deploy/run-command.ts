import { spawn } from "node:child_process";
import { constants } from "node:os";

/**
 * Runs a program of node_modules/.bin (which bootstrap has put first on PATH) with our output, and resolves to its exit
 * code. It is ended together with this process.
 */
export function runCommand(command: string, args: string[]): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: "inherit" });
    const forward = (signal: NodeJS.Signals) => child.kill(signal);
    const end = () => child.kill("SIGTERM");
    process.on("SIGINT", forward).on("SIGTERM", forward).on("disconnect", end);
    const finish = (code: number) => {
      process.off("SIGINT", forward).off("SIGTERM", forward).off("disconnect", end);
      resolve(code);
    };
    child.once("error", (error) => {
      process.stderr.write(`${command} cannot be run: ${error.message}.\n`);
      finish(1);
    });
    child.once("exit", (code, signal) => finish(signal === null ? (code ?? 1) : 128 + constants.signals[signal]));
  });
}
