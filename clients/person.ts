/** The person who runs a command, and functions that the commands of people share. */
import { absence, CommandError, dataFile, findService, type Sandbox, UsageError } from "./command.ts";
import { createTransport, ServiceError, ServiceUnreachable, trustCertificate } from "./http/transport.ts";
import { clientLimits } from "./limits.ts";
import { openSession, type Session } from "./session.ts";

/** The roles that commands act for: the API of each, and the environment variables of its log-in. */
const PARTIES = {
  operator: { api: "reconciliation", variables: ["OPERATOR_EMAIL", "OPERATOR_PASSWORD"] },
  owner: { api: "backoffice", variables: ["OWNER_EMAIL", "OWNER_PASSWORD"] },
} as const;
export type Party = keyof typeof PARTIES & keyof Sandbox;

export const accessHelp = (party: Party): string => `  Where, and who you are:
      --base-url URL      BASE_URL, or what \`npm start\` wrote to sandbox.json of DATA_DIR
      GATEWAY_CERTIFICATE_FILE
                          a certificate of the service in PEM, trusted beside the
                          authorities of Node; left out, the one of \`npm start\`
      ${PARTIES[party].variables.join(", ")}
                          the log-in, as environment variables; left out, the sandbox's
                          ${party}
      --json              the service's answer as one JSON object, for programs

  Exit codes: 0 done, 1 refused or not reached, 2 the arguments cannot be understood.
`;
export const ACCESS_OPTIONS = {
  help: { type: "boolean", short: "h" },
  json: { type: "boolean" },
  "base-url": { type: "string" },
} as const;

/**
 * Throws `UsageError` for an option that the command does not use: without a filter that a person has typed, a command would
 * decide about more than they meant.
 */
export function refuseOthers(command: string, options: object, used: readonly string[]): void {
  const known = [...Object.keys(ACCESS_OPTIONS), ...used];
  const other = Object.keys(options).find((name) => !known.includes(name));
  if (other !== undefined) throw new UsageError(`"${command}" has no option --${other}; see --help.`);
}

export interface Person extends Session {
  readonly baseUrl: string;
  readonly signal: AbortSignal;
}

export type Work = (person: Person) => Promise<void>;

/**
 * The log-in in the environment; undefined when there is none. Throws `CommandError` for a half of it: the command would act as
 * another person.
 */
export function logInOf(party: Party, env: NodeJS.ProcessEnv): { email: string; password: string } | undefined {
  const { variables } = PARTIES[party];
  const [email, password] = variables.map((name) => env[name]);
  if (email && password) return { email, password };
  if (email || password) throw new CommandError(`Give both ${variables.join(" and ")}, or neither.`);
  return undefined;
}

/** Logs in, does the work, and logs out. */
export async function asPerson(
  party: Party,
  { "base-url": option }: { readonly "base-url"?: string | undefined },
  work: (person: Person) => Promise<void>,
): Promise<void> {
  const { baseUrl, certificateFile, sandbox } = findService(option, process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const { api, variables } = PARTIES[party];
  const details = logInOf(party, process.env) ?? sandbox?.[party];
  if (details === undefined) {
    const searched = absence(dataFile(process.env, "sandbox.json"));
    throw new CommandError(`Set ${variables.join(" and ")}; ${searched} for ${baseUrl}.`);
  }
  // The reader of the output may end early: the command still ends the session.
  process.stdout.on("error", () => undefined);
  const stopping = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => stopping.abort());
  const { signal } = stopping;
  const { pageMaxBytes: responseMaxBytes } = clientLimits;
  const transport = createTransport({
    baseUrl,
    api,
    pace: () => Promise.resolve(),
    responseMaxBytes,
  });
  try {
    const session = await openSession({ transport, details, signal });
    try {
      await work({ ...session, baseUrl, signal });
    } finally {
      // A failed log-out is ignored: the work is done, and the session expires by itself.
      await session.logOut().catch(() => undefined);
    }
  } catch (error) {
    throw signal.aborted ? new CommandError("Ended before it was done.") : sentenceOf(error);
  }
}

function sentenceOf(error: unknown): unknown {
  if (error instanceof ServiceError) return new CommandError(`${error.message} (${error.code})`);
  return error instanceof ServiceUnreachable ? new CommandError(error.message) : error;
}

export const print = (line: string): void => void process.stdout.write(`${line}\n`);
export const printJson = (value: unknown): void => print(JSON.stringify(value));

/** Parses a typed id. Throws `UsageError`. */
export function idOf(text: string | undefined, name: string): number {
  if (text === undefined) throw new UsageError(`Give ${name}; see --help.`);
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`${name} is a number such as 3, and not "${text}".`);
  return Number(text);
}

/** Returns a required option. Throws `UsageError`. */
export function required(text: string | undefined, name: string): string {
  if (text === undefined || text === "") throw new UsageError(`Give ${name}; see --help.`);
  return text;
}

/** Reads all pages of a list: `readPage` returns the rows after the last known one, and whether there are more. */
export async function allRows<TRow>(
  readPage: (last: TRow | undefined) => Promise<readonly [rows: readonly TRow[], hasMore: boolean]>,
): Promise<TRow[]> {
  const all: TRow[] = [];
  for (;;) {
    const [rows, hasMore] = await readPage(all.at(-1));
    all.push(...rows);
    if (!hasMore || rows.length === 0) return all;
  }
}

/** A query without the undefined fields. */
export function queryOf(fields: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? "" : `?${query.toString()}`;
}
