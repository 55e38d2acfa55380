/**
 * What an owner and a developer of devices or of webhook consumers do by command.
 *
 *   npm run cli -- --help
 */
import { CERTIFICATION_HELP, runCertificate, runCertify } from "./certification/command.ts";
import { endWithError, UsageError } from "./command.ts";
import { runConformance } from "./conformance/command.ts";
import { DEVICES_HELP, runDevices } from "./devices/command.ts";
import { accessHelp } from "./person.ts";
import { runSandbox, SANDBOX_HELP } from "./sandbox/sandboxes.ts";
import { WEBHOOKS_HELP } from "./webhooks/arguments.ts";
import { runWebhooks } from "./webhooks/command.ts";

/** Each command reads its own arguments: those behind its name. */
const COMMANDS: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  devices: runDevices,
  sandbox: runSandbox,
  webhooks: runWebhooks,
  conformance: runConformance,
  certify: runCertify,
  certificate: runCertificate,
};

const HELP = `What an owner and a developer of devices or of webhook consumers do by command.

${SANDBOX_HELP}${DEVICES_HELP}${WEBHOOKS_HELP}  npm run cli -- conformance --sandbox ID
      Checks a service or a device; conformance --help has its options and exit codes
${CERTIFICATION_HELP}
${accessHelp("owner")}`;

const isHelp = (argument: string): boolean => argument === "--help" || argument === "-h";

try {
  const [name = "", ...args] = process.argv.slice(2);
  const command = COMMANDS[name];
  if (isHelp(name) || (command !== runConformance && args.some(isHelp))) process.stdout.write(HELP);
  else if (command === undefined) throw new UsageError(`Use ${Object.keys(COMMANDS).join(", ")}; see --help.`);
  else await command(args);
} catch (error) {
  endWithError(error);
}
