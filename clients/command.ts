/** Shared by the commands: errors for the person who typed, files of the data folder, and the address of the service. */
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { z } from "zod";

/** Ends the command; `message` is one sentence for the person who typed it. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** The arguments cannot be understood: exit code 2. */
export class UsageError extends CommandError {}

/** The options and arguments of a command line. Throws `UsageError`. */
export function parseCommandLine<T extends NonNullable<ParseArgsConfig["options"]>>(
  args: readonly string[],
  options: T,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // Only the first sentence: Node adds advice that does not fit here.
    const [first] = (error instanceof Error ? error.message : "The arguments cannot be understood").split(/\.\s/);
    throw new UsageError(`${first?.replace(/\.$/, "")}; --help shows what there is.`);
  }
}

const DEFAULT_BASE_URL = "http://127.0.0.1:8480";

const personSchema = z.object({ email: z.string(), password: z.string() });
const stationSchema = z.object({
  stationId: z.int(),
  devices: z.array(z.object({ deviceId: z.int(), kind: z.string() })),
});
const sandboxSchema = z.object({
  baseUrl: z.url(),
  certificate: z.object({ file: z.string(), publicKeyPin: z.string() }).nullable(),
  owner: personSchema,
  cashier: personSchema,
  operator: personSchema,
  robotics: z.object({ consumerId: z.int(), credential: z.string() }),
  station: stationSchema,
  demoStation: stationSchema,
});
/** The content of `sandbox.json`, which `npm start` writes into its data folder. */
export type Sandbox = z.infer<typeof sandboxSchema>;

/** A file of the data folder of `npm start`. */
export const dataFile = (env: NodeJS.ProcessEnv, name: string): string => resolve(env["DATA_DIR"] || ".data", name);

/** Undefined when there is no such file. */
export function readSandbox(path: string): Sandbox | undefined {
  return readJson(path, sandboxSchema);
}

/** The credential of the virtual display at the demo station; empty while it has none. */
export function displayCredential(sandboxPath: string): string {
  const path = join(dirname(sandboxPath), "virtual-display.json");
  return readJson(path, z.object({ credential: z.string() }))?.credential ?? "";
}

/** Undefined when the file cannot be read or does not match the schema. */
export function readJson<TSchema extends z.ZodType>(path: string, schema: TSchema): z.infer<TSchema> | undefined {
  try {
    return schema.safeParse(JSON.parse(readFileSync(path, "utf8"))).data;
  } catch {
    return undefined;
  }
}

/** Throws `CommandError` when the folder is not writable. Call it before work whose result is written there. */
export function checkFolder(folder: string): void {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new CommandError(
      `No file can be written into ${folder}: ${messageOf(error)}. Make the folder, or name another.`,
    );
  }
}

/** Throws `CommandError`. */
export function writeText(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new CommandError(`${path} cannot be written: ${messageOf(error)}. Make room, or name another file.`);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Why a value could not be read from a file of the data folder, as part of an error sentence. */
export function absence(path: string): string {
  try {
    accessSync(path, constants.R_OK);
    return `${path} has none`;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return code === "ENOENT" ? `there is no ${path}` : `${path} cannot be read (${code})`;
  }
}

export interface Service {
  readonly baseUrl: string;
  /** The certificate of the service, trusted in addition to Node's certificate authorities. */
  readonly certificateFile: string | undefined;
  /** The content of `sandbox.json`; undefined when the file was written for another service. */
  readonly sandbox: Sandbox | undefined;
}

/**
 * Finds the service: an option has precedence over the environment, and the environment over the file of `npm start`. The
 * passwords of the file go only to the service for which it was written, never to another address that a person typed.
 */
export function findService(option: string | undefined, env: NodeJS.ProcessEnv): Service {
  const written = readSandbox(dataFile(env, "sandbox.json"));
  const baseUrl = (option ?? (env["BASE_URL"] || written?.baseUrl || DEFAULT_BASE_URL)).replace(/\/+$/, "");
  const origin = originOf(baseUrl);
  const sandbox = written !== undefined && originOf(written.baseUrl) === origin ? written : undefined;
  return { baseUrl, certificateFile: env["GATEWAY_CERTIFICATE_FILE"] || sandbox?.certificate?.file, sandbox };
}

function originOf(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    throw new CommandError(`The base URL is an http or https address, and not "${url}".`);
  return parsed.origin;
}

/** A refusal of the service, as the error of a command. */
export function refusalError(answer: unknown, status: number): CommandError {
  const refusal = refusalSchema.safeParse(answer).data;
  if (refusal === undefined) return new CommandError(`The service answered with status ${status}.`);
  const fields = (refusal.errors ?? []).map(({ pointer, detail }) => ` ${pointer}: ${detail}`).join("");
  return new CommandError(`${refusal.detail}${fields} (${refusal.code})`);
}

const refusalSchema = z.object({
  code: z.string(),
  detail: z.string(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
});

/** Prints the sentence of an error, and sets the exit code. */
export function endWithError(error: unknown): void {
  process.stderr.write(`${sentenceOf(error)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

function sentenceOf(error: unknown): string {
  if (error instanceof CommandError) return error.message;
  if (error instanceof Error && error.name === "AbortError") return "Ended before it was done.";
  // An error of the file system, for example a full disk.
  if (error instanceof Error && "syscall" in error) return `${error.message}.`;
  return "The service's answer cannot be understood.";
}
