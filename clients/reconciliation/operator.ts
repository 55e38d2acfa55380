/** Who runs a command of reconciliation, and what the commands share. */
import { absence, CommandError, dataFile, findService, UsageError } from "../command.ts";
import { createTransport, ServiceError, ServiceUnreachable, trustCertificate } from "../device/transport.ts";
import { clientLimits } from "../limits.ts";
import { openSession, type Session } from "../session.ts";

export const ACCESS_HELP = `  Where, and who you are:
      --base-url URL      BASE_URL, or what \`npm start\` wrote to sandbox.json of DATA_DIR
      OPERATOR_EMAIL, OPERATOR_PASSWORD
                          the log-in, as environment variables; left out, the sandbox's
                          operator
      --json              the service's answer as one JSON object, for programs

  Exit codes: 0 done, 1 refused or not reached, 2 the arguments cannot be understood.
`;
export const ACCESS_OPTIONS = {
  help: { type: "boolean", short: "h" },
  json: { type: "boolean" },
  "base-url": { type: "string" },
} as const;

export interface Operator extends Session {
  readonly baseUrl: string;
  readonly signal: AbortSignal;
}

export type Work = (operator: Operator) => Promise<void>;

/** Logs in, works, and logs out. */
export async function asOperator(
  { "base-url": option }: { readonly "base-url"?: string | undefined },
  work: (operator: Operator) => Promise<void>,
): Promise<void> {
  const { baseUrl, certificateFile, sandbox } = findService(option, process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const { OPERATOR_EMAIL: email, OPERATOR_PASSWORD: password } = process.env;
  const details = email && password ? { email, password } : sandbox?.operator;
  if (details === undefined) {
    const searched = absence(dataFile(process.env, "sandbox.json"));
    throw new CommandError(`Set OPERATOR_EMAIL and OPERATOR_PASSWORD; ${searched} for ${baseUrl}.`);
  }
  const stopping = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => stopping.abort());
  const { signal } = stopping;
  const { pageMaxBytes: responseMaxBytes } = clientLimits;
  const transport = createTransport({
    baseUrl,
    api: "reconciliation",
    pace: () => Promise.resolve(),
    responseMaxBytes,
  });
  try {
    const session = await openSession({ transport, details, signal });
    try {
      await work({ ...session, baseUrl, signal });
    } finally {
      // The session ends by itself; what was done is done, even when the service is gone by now.
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

/** An id that was typed. Throws `UsageError`. */
export function idOf(text: string | undefined, name: string): number {
  if (text === undefined) throw new UsageError(`Give ${name}; see --help.`);
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`${name} is a number such as 3, and not "${text}".`);
  return Number(text);
}

/** An option that was typed. Throws `UsageError`. */
export function required(text: string | undefined, name: string): string {
  if (text === undefined || text === "") throw new UsageError(`Give ${name}; see --help.`);
  return text;
}

/** A query without what is undefined. */
export function queryOf(fields: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? "" : `?${query.toString()}`;
}
