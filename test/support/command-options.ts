/** The options of a command that developers run: `npm run bench`, `npm run chaos`, `npm run soak`. */
import type { ParseArgsOptionsConfig } from "node:util";
import { endWithError, parseCommandLine, UsageError } from "../../clients/command.ts";

/** With `--help`, prints the help and exits. With invalid options, prints one sentence and exits with 2. */
export function commandOptions<T extends ParseArgsOptionsConfig>(help: string, options: T) {
  if (process.argv.includes("--help")) {
    process.stdout.write(help);
    process.exit();
  }
  try {
    const { values, positionals } = parseCommandLine(process.argv.slice(2), options);
    const [unknown] = positionals;
    if (unknown === undefined) return values;
    throw new UsageError(`There is no argument "${unknown}"; --help shows what there is.`);
  } catch (error) {
    endWithError(error);
    process.exit();
  }
}
