/**
 * `npm test`: static checks, then all tests against real NATS and PostgreSQL. `npm run check` (`--pure`): the part that needs
 * no servers. Further arguments go to vitest.
 */
import { runCommand } from "./run-command.ts";

const STATIC_CHECKS = [
  { title: "Types (tsc)", command: "tsc", args: ["-p", "."] },
  { title: "Type-aware lint (oxlint)", command: "oxlint", args: ["--type-aware", "--quiet"] },
  { title: "Format (biome)", command: "biome", args: ["check", "."] },
];

/**
 * Runs the checks at the same time, because none of them keeps all cores busy. Prints the output of each check below its
 * title when it has ended. Returns the exit code of the first in the list that failed, or 0.
 */
async function runStaticChecks(): Promise<number> {
  const codes = await Promise.all(
    STATIC_CHECKS.map(async ({ title, command, args }) => {
      const { code, output } = await runCommand(command, args, { output: "collected" });
      process.stdout.write(`── ${title}\n${output}`);
      return code;
    }),
  );
  return codes.find((code) => code !== 0) ?? 0;
}

const [first, ...rest] = process.argv.slice(2);
const isPure = first === "--pure";
// The tests run only after all checks have passed: code that does not compile would fail most of them.
let code = await runStaticChecks();
if (code === 0) {
  process.stdout.write(`── Tests${isPure ? " without servers" : ""} (vitest)\n`);
  const args = isPure ? ["--project", "pure", ...rest] : process.argv.slice(2);
  ({ code } = await runCommand("vitest", ["run", ...args]));
}
process.exit(code);
