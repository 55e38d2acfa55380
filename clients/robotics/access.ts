/** Where the service is and who asks: by option, by environment, or as the sandbox's file has it. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import type { AccessOptions } from "./arguments.ts";
import { CommandError } from "./command-error.ts";

const DEFAULT_BASE_URL = "http://127.0.0.1:8480";
const sandboxSchema = z.object({
  baseUrl: z.url(),
  certificate: z.object({ file: z.string() }).nullable(),
  owner: z.object({ email: z.string(), password: z.string() }),
  robotics: z.object({ consumerId: z.int(), credential: z.string() }),
});
type Sandbox = z.infer<typeof sandboxSchema>;

export interface Access {
  readonly baseUrl: string;
  /** The certificate of the service, trusted beside the authorities of Node. */
  readonly certificateFile: string | undefined;
  readonly credential: string | undefined;
  readonly owner: { readonly email: string; readonly password: string } | undefined;
  /** Where the sandbox's facts were searched, for an error's sentence. */
  readonly lookedIn: string;
  /** The sandbox's own consumer. */
  readonly consumerId: number | undefined;
}

/**
 * An option comes before the environment, which comes before the file. What the file knows goes to the service that it
 * was written for and to no other: a password must not leave for an address that somebody typed.
 */
export function readAccess(options: AccessOptions, env: NodeJS.ProcessEnv): Access {
  const lookedIn = resolve(env["DATA_DIR"] || ".data", "sandbox.json");
  const file = readSandbox(lookedIn);
  const baseUrl = options.baseUrl ?? (env["BASE_URL"] || file?.baseUrl || DEFAULT_BASE_URL);
  const origin = originOf(baseUrl);
  const sandbox = file !== undefined && originOf(file.baseUrl) === origin ? file : undefined;
  const email = options.ownerEmail ?? (env["OWNER_EMAIL"] || undefined);
  const password = options.ownerPassword ?? (env["OWNER_PASSWORD"] || undefined);
  if ((email === undefined) !== (password === undefined))
    throw new CommandError("Give both the owner's e-mail address and password, or neither.");
  return {
    baseUrl,
    certificateFile: env["GATEWAY_CERTIFICATE_FILE"] || sandbox?.certificate?.file,
    credential: options.credential ?? (env["ROBOTICS_CREDENTIAL"] || sandbox?.robotics.credential),
    owner: email === undefined || password === undefined ? sandbox?.owner : { email, password },
    lookedIn,
    consumerId: sandbox?.robotics.consumerId,
  };
}

function originOf(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    throw new CommandError(`The base URL is an http or https address, and not "${url}".`);
  return parsed.origin;
}

/** Undefined when there is none, or it is from a version that knew nothing of robotics. */
function readSandbox(path: string): Sandbox | undefined {
  try {
    return sandboxSchema.safeParse(JSON.parse(readFileSync(path, "utf8"))).data;
  } catch {
    return undefined;
  }
}
