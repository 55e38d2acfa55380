/**
 * Helps to develop a webhook consumer: `listen` forwards its deliveries to a local address, `trigger` makes events happen.
 *
 *   npm run robotics -- --help
 */

import { absence, CommandError } from "./command.ts";
import { createPace } from "./device/pace.ts";
import { createTransport, ServiceError, ServiceUnreachable, trustCertificate } from "./device/transport.ts";
import { clientLimits } from "./limits.ts";
import { type Command, HELP, parseCommand, readAccess } from "./robotics/arguments.ts";
import { checkLocalTarget, listen, newSecret } from "./robotics/listen.ts";
import { logIn, trigger } from "./robotics/trigger.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function run(command: Command, signal: AbortSignal): Promise<void> {
  if (command.name === "help") return void process.stdout.write(HELP);
  const { baseUrl, certificateFile, credential, owner: details, ...sandbox } = readAccess(command.options, process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const nothingThere = `${absence(sandbox.searched)} for ${baseUrl}`;
  const pace = createPace(clientLimits.roboticsGapMs);
  if (command.name === "listen") {
    const target = await checkLocalTarget(command.forwardTo);
    if (credential === undefined)
      throw new CommandError(
        `Give the consumer's credential with --credential or ROBOTICS_CREDENTIAL; ${nothingThere}.`,
      );
    const secret = command.secret ?? newSecret();
    if (command.secret === undefined) print(`Signing with the secret ${secret}`);
    const transport = createTransport({ baseUrl, api: "robotics", pace });
    return await listen({ transport, credential, target, secret, sinceId: command.sinceId, signal, print });
  }
  if (details === undefined)
    throw new CommandError(
      `Give the owner's log-in with OWNER_EMAIL and OWNER_PASSWORD, or with their options; ${nothingThere}.`,
    );
  const owner = await logIn({ transport: createTransport({ baseUrl, api: "backoffice", pace }), details, signal });
  try {
    await trigger({ owner, consumerId: command.consumerId ?? sandbox.consumerId, signal, print }, command.event);
  } finally {
    // The session ends by itself; what was triggered has happened, even when the service is gone by now.
    await owner.logOut().catch(() => undefined);
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof CommandError || error instanceof ServiceUnreachable) return error.message;
  if (error instanceof ServiceError) return `${error.message} (${error.code})`;
  return `The command cannot continue: ${error instanceof Error ? error.message : "an unexpected error."}`;
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
