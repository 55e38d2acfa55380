import { runCommand } from "./run-command.ts";

const CHECKS = [
  { title: "Types (tsc)", command: "tsc", args: ["-p", "."] },
  { title: "Type-aware lint (oxlint)", command: "oxlint", args: ["--type-aware", "--quiet"] },
  { title: "Format (biome)", command: "biome", args: ["check", "."] },
];

/** Runs the checks that need no server, each with one line; stops at the first that fails and returns its exit code. */
export async function runStaticChecks(): Promise<number> {
  for (const check of CHECKS) {
    process.stdout.write(`── ${check.title}\n`);
    const code = await runCommand(check.command, check.args);
    if (code !== 0) return code;
  }
  return 0;
}
