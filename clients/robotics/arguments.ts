/** The command line of `npm run robotics`, and where the service is and which credentials it uses. */
import { CommandError, dataFile, findService, parseCommandLine } from "../command.ts";

export const TRIGGERS = [
  "serving_task.offered",
  "serving_task.cancelled",
  "serving_task.expired",
  "robotics.paused",
  "robotics.resumed",
] as const;
export type Trigger = (typeof TRIGGERS)[number];

export const HELP = `Helps to develop a webhook consumer on your own machine.

  npm run robotics -- listen --forward-to http://127.0.0.1:4000/hook
      Reads the consumer's deliveries as they come and posts each to a local address,
      in order, signed as the service signs. Tries again until the target answers 2xx.
      --secret TEXT       sign with this; one is made and printed when left out
      --since-id N        start behind this delivery; 0 is from the beginning;
                          left out, only what comes from now on

  npm run robotics -- trigger EVENT
      Makes the event happen, by the owner's API. EVENT is one of
      ${TRIGGERS.join(", ")}
      --consumer-id N     whose event; left out, that of the sandbox's consumer,
                          or of the only one that is active

  Where, and who you are: by option, by environment, or as \`npm start\` wrote them
  to .data/sandbox.json (DATA_DIR). A program's options can be seen by others on the
  machine, its environment cannot.
      --base-url URL      BASE_URL
      --credential TEXT   ROBOTICS_CREDENTIAL, for listen
      --owner-email TEXT  OWNER_EMAIL, for trigger
      --owner-password TEXT  OWNER_PASSWORD, for trigger
`;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  "forward-to": { type: "string" },
  secret: { type: "string" },
  "since-id": { type: "string" },
  "consumer-id": { type: "string" },
  "base-url": { type: "string" },
  credential: { type: "string" },
  "owner-email": { type: "string" },
  "owner-password": { type: "string" },
} as const;

type Options = ReturnType<typeof parseCommandLine<typeof OPTIONS>>["values"];
export type Command = ReturnType<typeof parseCommand>;

/** Throws `CommandError` for what it does not understand. */
export function parseCommand(args: readonly string[]) {
  const { values, positionals } = parseCommandLine(args, OPTIONS);
  const [name, event, ...rest] = positionals;
  if (values.help === true) return { name: "help" } as const;
  if (name === "listen") {
    const forwardTo = values["forward-to"];
    if (event !== undefined) throw new CommandError(`listen takes no "${event}"; --help shows what it takes.`);
    if (forwardTo === undefined)
      throw new CommandError("Say where to with --forward-to, for example http://127.0.0.1:4000/hook.");
    if (values.secret === "") throw new CommandError("The secret is empty; leave --secret out and one is made.");
    // Without --since-id only what comes from now on is forwarded.
    const sinceId = numberOf("since-id", values["since-id"], 0);
    return { name, forwardTo, secret: values.secret, sinceId, options: values } as const;
  }
  if (name === "trigger") {
    const known = TRIGGERS.find((trigger) => trigger === event);
    if (event !== undefined && known === undefined)
      throw new CommandError(`There is no event "${event}" to trigger; there are ${TRIGGERS.join(", ")}.`);
    if (known === undefined || rest.length > 0)
      throw new CommandError(`Say which event to trigger: ${TRIGGERS.join(", ")}.`);
    const consumerId = numberOf("consumer-id", values["consumer-id"], 1);
    return { name, event: known, consumerId, options: values } as const;
  }
  throw new CommandError("Say what to do, listen or trigger; --help shows how.");
}

function numberOf(option: string, text: string | undefined, min: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min)) throw new CommandError(`--${option} is a number from ${min}, and not "${text}".`);
  return value;
}

/**
 * Where the service is and which credentials are used. An option comes before the environment, which comes before the file
 * of `npm start`.
 */
export function readAccess(options: Options, env: NodeJS.ProcessEnv) {
  const { baseUrl, certificateFile, sandbox } = findService(options["base-url"], env);
  const email = options["owner-email"] ?? (env["OWNER_EMAIL"] || undefined);
  const password = options["owner-password"] ?? (env["OWNER_PASSWORD"] || undefined);
  if ((email === undefined) !== (password === undefined))
    throw new CommandError("Give both the owner's e-mail address and password, or neither.");
  return {
    baseUrl,
    certificateFile,
    credential: options.credential ?? (env["ROBOTICS_CREDENTIAL"] || sandbox?.robotics.credential),
    owner: email === undefined || password === undefined ? sandbox?.owner : { email, password },
    /** The sandbox's consumer. */
    consumerId: sandbox?.robotics.consumerId,
    /** Where the sandbox's facts were searched, for the sentence of an error. */
    searched: dataFile(env, "sandbox.json"),
  };
}
