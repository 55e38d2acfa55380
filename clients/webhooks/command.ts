/** `webhooks listen|trigger`: helps to develop a webhook consumer on a developer's own machine. */
import { absence, CommandError } from "../command.ts";
import { createPace } from "../http/pace.ts";
import { createTransport, ServiceError, ServiceUnreachable, trustCertificate } from "../http/transport.ts";
import { clientLimits } from "../limits.ts";
import { print, printJson } from "../person.ts";
import { type Progress, parseCommand, readAccess } from "./arguments.ts";
import { checkLocalTarget, listen, newSecret } from "./listen.ts";
import { logIn, trigger } from "./trigger.ts";

export async function runWebhooks(args: readonly string[]): Promise<void> {
  const command = parseCommand(args);
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, stop);
  process.once("disconnect", stop);
  // The reader of the output has ended.
  process.stdout.on("error", stop);
  try {
    await work(command, stopping.signal);
  } catch (error) {
    throw stopping.signal.aborted ? new CommandError("Ended before it was done.") : sentenceOf(error);
  } finally {
    // An open channel to the parent would keep the process alive.
    if (process.connected) process.disconnect();
  }
}

async function work(command: ReturnType<typeof parseCommand>, signal: AbortSignal): Promise<void> {
  const { baseUrl, certificateFile, credential, owner: details, ...sandbox } = readAccess(command.options, process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const progress: Progress = (line, facts) => (command.options.json === true ? printJson(facts) : print(line));
  const nothingThere = `${absence(sandbox.searched)} for ${baseUrl}`;
  const pace = createPace(clientLimits.roboticsGapMs);
  if (command.name === "listen") {
    const target = await checkLocalTarget(command.forwardTo);
    if (credential === undefined)
      throw new CommandError(
        `Give the consumer's credential with --credential or ROBOTICS_CREDENTIAL; ${nothingThere}.`,
      );
    const secret = command.secret ?? newSecret();
    if (command.secret === undefined) progress(`Signing with the secret ${secret}`, { step: "signing", secret });
    const transport = createTransport({ baseUrl, api: "robotics", pace });
    return await listen({ transport, credential, target, secret, sinceId: command.sinceId, signal, progress });
  }
  if (details === undefined)
    throw new CommandError(
      `Give the owner's log-in with OWNER_EMAIL and OWNER_PASSWORD, or with their options; ${nothingThere}.`,
    );
  const owner = await logIn({ transport: createTransport({ baseUrl, api: "backoffice", pace }), details, signal });
  try {
    await trigger({ owner, consumerId: command.consumerId ?? sandbox.consumerId, signal, progress }, command.event);
  } finally {
    // A failed log-out is ignored: the event has happened, and the session expires by itself.
    await owner.logOut().catch(() => undefined);
  }
}

function sentenceOf(error: unknown): CommandError {
  if (error instanceof CommandError) return error;
  if (error instanceof ServiceUnreachable) return new CommandError(error.message);
  if (error instanceof ServiceError) return new CommandError(`${error.message} (${error.code})`);
  const reason = error instanceof Error ? error.message : "an unexpected error.";
  return new CommandError(`The command cannot continue: ${reason}`);
}
