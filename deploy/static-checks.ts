import { runCommand } from "./run-command.ts";

const CHECKS = [
  { title: "Types (tsc)", command: "tsc", args: ["-p", "."] },
  { title: "Type-aware lint (oxlint)", command: "oxlint", args: ["--type-aware", "--quiet"] },
  { title: "Format (biome)", command: "biome", args: ["check", "."] },
];

/**
 * Runs the checks that need no server, side by side, because none of them keeps all cores busy. What each prints comes
 * below its title once it has ended. Returns the exit code of the first in the list that failed, or 0.
 */
export async function runStaticChecks(): Promise<number> {
  const codes = await Promise.all(
    CHECKS.map(async ({ title, command, args }) => {
      const { code, output } = await runCommand(command, args, { output: "collected" });
      process.stdout.write(`── ${title}\n${output}`);
      return code;
    }),
  );
  return codes.find((code) => code !== 0) ?? 0;
}
