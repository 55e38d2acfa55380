/**
 * What an owner and a developer of devices do by command.
 *
 *   npm run cli -- --help
 */
import { endWithError, parseCommandLine, UsageError } from "./command.ts";
import { ACCESS_OPTIONS, accessHelp, asPerson } from "./person.ts";
import { SANDBOX_HELP, SANDBOX_OPTIONS, sandboxWork } from "./sandbox/sandboxes.ts";

const HELP = `What an owner and a developer of devices do by command.

${SANDBOX_HELP}
${accessHelp("owner")}`;

try {
  const { values, positionals } = parseCommandLine(process.argv.slice(2), { ...ACCESS_OPTIONS, ...SANDBOX_OPTIONS });
  const [command, ...words] = positionals;
  if (values.help === true) process.stdout.write(HELP);
  else if (command === "sandbox") await asPerson("owner", values, sandboxWork(words, values));
  else throw new UsageError("Use sandbox; see --help.");
} catch (error) {
  endWithError(error);
}
