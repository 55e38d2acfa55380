// `npm run check`: the quick part of `npm test`, without servers. Arguments go to vitest.
import { runCommand } from "./run-command.ts";
import { runStaticChecks } from "./static-checks.ts";

let code = await runStaticChecks();
if (code === 0) {
  process.stdout.write("── Tests without servers (vitest)\n");
  ({ code } = await runCommand("vitest", ["run", "--project", "pure", ...process.argv.slice(2)]));
}
process.exit(code);
