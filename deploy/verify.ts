// `npm test`: static checks, then all tests against real NATS and PostgreSQL. Arguments go to vitest.
import { runCommand } from "./run-command.ts";
import { runStaticChecks } from "./static-checks.ts";

// A tree that does not compile makes every test's failure noise, so the first failing check ends the run.
let code = await runStaticChecks();
if (code === 0) {
  process.stdout.write("── Tests (vitest)\n");
  ({ code } = await runCommand("vitest", ["run", ...process.argv.slice(2)]));
}
process.exit(code);
