/**
 * Commands for owners, and for developers of devices and of webhook consumers.
 *
 *   npm run cli -- --help
 */
import { CERTIFICATE_HELP, CERTIFY_HELP, runCertificate, runCertify } from "./certification/command.ts";
import { endWithError, UsageError } from "./command.ts";
import { runConformance } from "./conformance/command.ts";
import { DEVICES_HELP, runDevices } from "./devices/command.ts";
import { accessHelp } from "./person.ts";
import { runSandbox, SANDBOX_HELP } from "./sandbox/sandboxes.ts";
import { WEBHOOKS_HELP } from "./webhooks/arguments.ts";
import { runWebhooks } from "./webhooks/command.ts";

interface Command {
  readonly run: (args: readonly string[]) => Promise<void>;
  /** Undefined where the command prints its help itself. */
  readonly help?: string;
}

/** Each command reads the arguments after its name. */
const COMMANDS: Readonly<Record<string, Command>> = {
  sandbox: { run: runSandbox, help: SANDBOX_HELP },
  devices: { run: runDevices, help: DEVICES_HELP },
  webhooks: { run: runWebhooks, help: WEBHOOKS_HELP },
  conformance: { run: runConformance },
  certify: { run: runCertify, help: CERTIFY_HELP },
  certificate: { run: runCertificate, help: CERTIFICATE_HELP },
};

const HELP = `Commands for owners, and for developers of devices and of webhook consumers.
Each command prints its part of this text with --help.

${SANDBOX_HELP}${DEVICES_HELP}${WEBHOOKS_HELP}  npm run cli -- conformance --sandbox ID
      Checks a service or a device; conformance --help has its options and exit codes
${CERTIFY_HELP}${CERTIFICATE_HELP}
${accessHelp("owner")}`;

const isHelp = (argument: string): boolean => argument === "--help" || argument === "-h";

try {
  const [name = "", ...args] = process.argv.slice(2);
  const command = COMMANDS[name];
  if (isHelp(name)) process.stdout.write(HELP);
  else if (command === undefined) throw new UsageError(`Use ${Object.keys(COMMANDS).join(", ")}; see --help.`);
  else if (command.help !== undefined && args.some(isHelp))
    process.stdout.write(`${command.help}\n${accessHelp("owner")}`);
  else await command.run(args);
} catch (error) {
  endWithError(error);
}
