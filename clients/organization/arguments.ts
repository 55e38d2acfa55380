/** The command line of `npm run organization`. */
import { parseArgs } from "node:util";

/** The arguments cannot be understood: exit code 2. */
export class UsageError extends Error {}

export const HELP = `Makes and lists organizations, by the platform's API.

  npm run organization -- create --name NAME --owner-email EMAIL
      Makes an organization and its first owner, and prints the owner's initial
      password, this once. The owner changes it after the first log-in.
      --owner-name NAME   how the owner is called; the e-mail address when left out
      --by NAME           who does it, for the audit log; the user of this machine
                          when left out
  npm run organization -- list
      Lists the organizations by id.

  --json                  one JSON object on standard output, for programs
  --base-url URL          where the service is: BASE_URL, or what \`npm start\` wrote to
                          sandbox.json of DATA_DIR, or http://127.0.0.1:8480
  PLATFORM_KEY            the platform key, as an environment variable; left out, the
                          one that \`npm start\` keeps in secrets.json of DATA_DIR

  Exit codes: 0 done, 1 refused or not reached, 2 the arguments cannot be understood.
`;

export type Command =
  | { readonly name: "help" }
  | { readonly name: "list"; readonly json: boolean; readonly baseUrl: string | undefined }
  | {
      readonly name: "create";
      readonly organization: string;
      readonly ownerEmail: string;
      readonly ownerName: string | undefined;
      readonly by: string | undefined;
      readonly json: boolean;
      readonly baseUrl: string | undefined;
    };

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  json: { type: "boolean" },
  name: { type: "string" },
  "owner-email": { type: "string" },
  "owner-name": { type: "string" },
  by: { type: "string" },
  "base-url": { type: "string" },
} as const;

/** Throws `UsageError` for what it does not understand. */
export function parseCommand(args: readonly string[]): Command {
  const { values, positionals } = parsed(args);
  if (values.help === true) return { name: "help" };
  const [name, ...rest] = positionals;
  if (rest.length > 0) throw new UsageError(`There is one argument too many, "${rest[0]}"; see --help.`);
  const common = { json: values.json === true, baseUrl: values["base-url"] };
  if (name === "list") return { name, ...common };
  if (name !== "create") throw new UsageError("Use create or list; see --help.");
  const { name: organization, "owner-email": ownerEmail, "owner-name": ownerName, by } = values;
  if (organization === undefined || ownerEmail === undefined)
    throw new UsageError("Give both --name and --owner-email; see --help.");
  return { name, organization, ownerEmail, ownerName, by, ...common };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : "The arguments cannot be understood.");
  }
}
