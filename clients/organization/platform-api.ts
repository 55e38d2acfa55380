/** The platform's API as the command uses it. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";

/** One sentence for a person: exit code 1. */
export class PlatformError extends Error {}

const REQUEST_MS = 15_000;
/** A list of more pages than this is no list that a person reads. */
const MOST_PAGES = 1_000;

const organizationSchema = z.object({
  organization_id: z.int(),
  name: z.string(),
  sandbox: z.boolean(),
  created_at: z.string(),
});
export type Organization = z.infer<typeof organizationSchema>;
const createdSchema = z.object({
  organization: organizationSchema,
  owner: z.object({ user_id: z.int(), email: z.string(), name: z.string() }),
  initial_password: z.string().nullable(),
});
const pageSchema = z.object({ organizations: z.array(organizationSchema), has_more: z.boolean() });
const errorSchema = z.object({
  code: z.string(),
  detail: z.string(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
});

export interface PlatformAccess {
  readonly baseUrl: string;
  readonly key: string;
}

const DEFAULT_BASE_URL = "http://127.0.0.1:8480";
const placeSchema = z.object({ baseUrl: z.url(), certificate: z.object({ file: z.string() }).nullable() });

/** Where the service is: by option, by environment, or as `npm start` wrote it; with the certificate that it shows there. */
export function findService(
  option: string | undefined,
  env: NodeJS.ProcessEnv,
): { readonly baseUrl: string; readonly certificateFile: string | undefined } {
  const written = readPlace(resolve(env["DATA_DIR"] || ".data", "sandbox.json"));
  const baseUrl = option ?? (env["BASE_URL"] || written?.baseUrl || DEFAULT_BASE_URL);
  const isWritten = written !== undefined && URL.parse(baseUrl)?.origin === new URL(written.baseUrl).origin;
  const file = isWritten ? written.certificate?.file : undefined;
  return { baseUrl, certificateFile: env["GATEWAY_CERTIFICATE_FILE"] || file };
}

function readPlace(path: string): z.infer<typeof placeSchema> | undefined {
  try {
    return placeSchema.safeParse(JSON.parse(readFileSync(path, "utf8"))).data;
  } catch {
    return undefined;
  }
}

/** The key of the environment, else the one that `npm start` keeps. Throws `PlatformError` when there is none. */
export function readPlatformKey(env: NodeJS.ProcessEnv): string {
  const given = env["PLATFORM_KEY"];
  if (given !== undefined && given !== "") return given;
  const path = resolve(env["DATA_DIR"] || ".data", "secrets.json");
  try {
    return z.object({ platform_key: z.string() }).parse(JSON.parse(readFileSync(path, "utf8"))).platform_key;
  } catch {
    throw new PlatformError(`Set PLATFORM_KEY; ${path} has no platform key.`);
  }
}

export async function createOrganization(
  access: PlatformAccess,
  body: {
    readonly name: string;
    readonly owner: { readonly email: string; readonly name: string };
    readonly by: string;
  },
): Promise<z.infer<typeof createdSchema>> {
  return createdSchema.parse(await request(access, "POST", "", body));
}

/** All of them, page by page. */
export async function listOrganizations(access: PlatformAccess): Promise<Organization[]> {
  const found: Organization[] = [];
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const query = `?limit=500&since_id=${found.at(-1)?.organization_id ?? 0}`;
    const page = pageSchema.parse(await request(access, "GET", query));
    found.push(...page.organizations);
    if (!page.has_more) return found;
  }
  throw new PlatformError("There are too many organizations to list.");
}

async function request(
  { baseUrl, key }: PlatformAccess,
  method: string,
  tail: string,
  body?: object,
): Promise<unknown> {
  const url = URL.parse(`/api/platform/v1/organizations/${tail}`, baseUrl);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new PlatformError(`The base URL is an http or https address, and not "${baseUrl}".`);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const signal = AbortSignal.timeout(REQUEST_MS);
  const init = { method, headers, signal, redirect: "manual" as const };
  const response = await fetch(url, body === undefined ? init : { ...init, body: JSON.stringify(body) }).catch(() => {
    throw new PlatformError(`The service at ${url.origin} does not answer; check --base-url and that it runs.`);
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok) return answer;
  const refused = errorSchema.safeParse(answer).data;
  if (refused === undefined) throw new PlatformError(`The service answered with status ${response.status}.`);
  const fields = (refused.errors ?? []).map(({ pointer, detail }) => ` ${pointer}: ${detail}`).join("");
  throw new PlatformError(`${refused.detail}${fields} (${refused.code})`);
}
