/**
 * Helps to develop a webhook consumer: `listen` forwards its deliveries to a local address, `trigger` makes events happen.
 *
 *   npm run robotics -- --help
 */
import { ServiceRefusal, ServiceUnreachable } from "./device-error.ts";
import { createTransport } from "./device-transport.ts";
import { clientLimits } from "./limits.ts";
import { createPace } from "./pace.ts";
import { readAccess } from "./robotics/access.ts";
import { type Command, HELP, parseCommand } from "./robotics/arguments.ts";
import { CommandError } from "./robotics/command-error.ts";
import { listen } from "./robotics/listen.ts";
import { checkLocalTarget } from "./robotics/local-target.ts";
import { logIn } from "./robotics/owner.ts";
import { newSecret } from "./robotics/signature.ts";
import { trigger } from "./robotics/trigger.ts";
import { trustCertificate } from "./trusted-certificate.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function run(command: Command, signal: AbortSignal): Promise<void> {
  if (command.name === "help") {
    process.stdout.write(HELP);
    return;
  }
  const access = readAccess(command.access, process.env);
  const { baseUrl, credential, owner: details, consumerId, lookedIn } = access;
  if (access.certificateFile !== undefined) trustCertificate(access.certificateFile);
  const nothingThere = `${lookedIn} has none for ${baseUrl}`;
  const pace = createPace(clientLimits.roboticsGapMs);
  if (command.name === "listen") {
    const target = await checkLocalTarget(command.forwardTo);
    if (credential === undefined)
      throw new CommandError(
        `Give the consumer's credential with --credential or ROBOTICS_CREDENTIAL; ${nothingThere}.`,
      );
    const secret = command.secret ?? newSecret();
    if (command.secret === undefined) say(`Signing with the secret ${secret}`);
    const transport = createTransport({ baseUrl, api: "robotics", pace });
    await listen({ transport, credential, target, secret, sinceId: command.sinceId, signal, say });
    return;
  }
  if (details === undefined)
    throw new CommandError(
      `Give the owner's log-in with OWNER_EMAIL and OWNER_PASSWORD, or with their options; ${nothingThere}.`,
    );
  const owner = await logIn({ transport: createTransport({ baseUrl, api: "backoffice", pace }), details, signal });
  try {
    await trigger({ owner, consumerId: command.consumerId ?? consumerId, signal, say }, command.event);
  } finally {
    // The session would end by itself; a service that is gone by now is no failure of what was triggered.
    await owner.logOut().catch(() => undefined);
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof CommandError || error instanceof ServiceUnreachable) return error.message;
  if (error instanceof ServiceRefusal) return `${error.message} (${error.code})`;
  return `It cannot go on: ${error instanceof Error ? error.message : "an unexpected error."}`;
}

const stopping = new AbortController();
const stop = (): void => stopping.abort();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, stop);
process.once("disconnect", stop);
try {
  await run(parseCommand(process.argv.slice(2)), stopping.signal);
} catch (error) {
  process.stderr.write(`${stopping.signal.aborted ? "Ended before it was done." : sentenceOf(error)}\n`);
  process.exitCode = 1;
}
// An open channel to the parent would keep the process alive.
if (process.connected) process.disconnect();
