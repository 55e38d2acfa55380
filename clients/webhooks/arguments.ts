/** The command line of `npm run cli -- webhooks`, and where the service is and which credentials it uses. */
import { CommandError, dataFile, findService, parseCommandLine, UsageError } from "../command.ts";

export const TRIGGERS = [
  "serving_task.offered",
  "serving_task.cancelled",
  "serving_task.expired",
  "robotics.paused",
  "robotics.resumed",
] as const;
export type Trigger = (typeof TRIGGERS)[number];

export const WEBHOOKS_HELP = `  npm run cli -- webhooks listen --forward-to http://127.0.0.1:4000/hook
      Reads the consumer's deliveries as they come and posts each to a local address,
      in order, signed as the service signs. Tries again until the target answers 2xx.
      --secret TEXT       signs with this; one is made and printed when left out
      --since-id N        starts after this delivery; 0 is from the beginning;
                          left out, only later deliveries are forwarded
      --credential TEXT   the consumer's; ROBOTICS_CREDENTIAL, or the sandbox's
  npm run cli -- webhooks trigger EVENT
      Causes the event, by the owner's API. EVENT is one of
      ${TRIGGERS.join(", ")}
      --consumer-id N     the consumer of the event; left out, the sandbox's
                          consumer, or the only one that is active
      --owner-email TEXT, --owner-password TEXT
                          OWNER_EMAIL and OWNER_PASSWORD. Other users of the machine can
                          see a program's options, but not its environment
`;

const OPTIONS = {
  json: { type: "boolean" },
  "forward-to": { type: "string" },
  secret: { type: "string" },
  "since-id": { type: "string" },
  "consumer-id": { type: "string" },
  "base-url": { type: "string" },
  credential: { type: "string" },
  "owner-email": { type: "string" },
  "owner-password": { type: "string" },
} as const;

/** One line for a person, or with `--json` its facts for a program. */
export type Progress = (line: string, facts: Readonly<Record<string, unknown>>) => void;

type Options = ReturnType<typeof parseCommandLine<typeof OPTIONS>>["values"];

/** Throws `UsageError` for arguments that it does not understand. */
export function parseCommand(args: readonly string[]) {
  const { values, positionals } = parseCommandLine(args, OPTIONS);
  const [name, event, ...rest] = positionals;
  if (name === "listen") {
    const forwardTo = values["forward-to"];
    if (event !== undefined) throw new UsageError(`listen takes no "${event}"; --help shows what it takes.`);
    if (forwardTo === undefined)
      throw new UsageError("Name the target with --forward-to, for example http://127.0.0.1:4000/hook.");
    if (values.secret === "") throw new UsageError("The secret is empty; leave --secret out and one is made.");
    // Without --since-id, `listen` forwards only later deliveries.
    const sinceId = numberOf("since-id", values["since-id"], 0);
    return { name, forwardTo, secret: values.secret, sinceId, options: values } as const;
  }
  if (name === "trigger") {
    const known = TRIGGERS.find((trigger) => trigger === event);
    if (event !== undefined && known === undefined)
      throw new UsageError(`There is no event "${event}" to trigger; there are ${TRIGGERS.join(", ")}.`);
    if (known === undefined || rest.length > 0)
      throw new UsageError(`Name the event to trigger: ${TRIGGERS.join(", ")}.`);
    const consumerId = numberOf("consumer-id", values["consumer-id"], 1);
    return { name, event: known, consumerId, options: values } as const;
  }
  throw new UsageError("Use webhooks listen or trigger; see --help.");
}

function numberOf(option: string, text: string | undefined, min: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min)) throw new UsageError(`--${option} is a number from ${min}, and not "${text}".`);
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
