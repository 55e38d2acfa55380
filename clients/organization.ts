/**
 * Makes organizations with their first owners, lists them, and resets owners' passwords, with the platform key.
 *
 *   npm run organization -- --help
 */
import { userInfo } from "node:os";
import { z } from "zod";
import {
  absence,
  CommandError,
  dataFile,
  endWithError,
  findService,
  parseCommandLine,
  readJson,
  refusalError,
  UsageError,
} from "./command.ts";
import { noAnswer } from "./http/no-answer.ts";
import { trustCertificate } from "./http/transport.ts";
import { print } from "./person.ts";

const HELP = `Makes and lists organizations, and resets owners' passwords, by the platform's API.

  npm run organization -- create --name NAME --owner-email EMAIL
      Makes an organization and its first owner, and prints the owner's initial
      password once. The owner changes it after the first log-in.
      --owner-name NAME   the owner's name; the e-mail address when left out
      --by NAME           the person who runs this command, for the audit log; the
                          user of this machine when left out
  npm run organization -- reset-password --owner-email EMAIL
      Sets a new initial password for an owner who cannot log in, and prints it
      once. The owner's sessions end. A suspended owner stays suspended. --by as
      above.
  npm run organization -- list
      Lists the organizations by id.

  --json                  one JSON object on standard output, for programs
  --base-url URL          where the service is: BASE_URL, or what \`npm start\` wrote to
                          sandbox.json of DATA_DIR, or http://127.0.0.1:8480
  GATEWAY_CERTIFICATE_FILE
                          a certificate of the service in PEM, trusted beside the
                          authorities of Node; left out, the one of \`npm start\`
  PLATFORM_KEY            the platform key, as an environment variable; left out, the
                          one that \`npm start\` keeps in secrets.json of DATA_DIR

  Exit codes: 0 done, 1 refused or not reached, 2 the arguments cannot be understood.
`;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  json: { type: "boolean" },
  name: { type: "string" },
  "owner-email": { type: "string" },
  "owner-name": { type: "string" },
  by: { type: "string" },
  "base-url": { type: "string" },
} as const;

const REQUEST_MS = 15_000;
/** The command lists at most this many pages: no person reads a longer list. */
const MAX_PAGES = 1_000;

const organizationSchema = z.object({
  organization_id: z.int(),
  name: z.string(),
  sandbox: z.boolean(),
  created_at: z.string(),
});
type Organization = z.infer<typeof organizationSchema>;
const ownerSchema = z.object({
  owner: z.object({ user_id: z.int(), email: z.string(), name: z.string(), status: z.string() }),
  initial_password: z.string().nullable(),
});
const createdSchema = ownerSchema.extend({ organization: organizationSchema });
/** `effective` is false while a gateway may not have received the end of the sessions. */
const resetSchema = ownerSchema.extend({ effective: z.boolean().optional() });
const pageSchema = z.object({ organizations: z.array(organizationSchema), has_more: z.boolean() });

interface PlatformAccess {
  readonly baseUrl: string;
  readonly key: string;
}

async function run(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseCommandLine(args, OPTIONS);
  if (values.help === true) return void process.stdout.write(HELP);
  const [command, ...rest] = positionals;
  if (rest.length > 0) throw new UsageError(`There is one argument too many, "${rest[0]}"; see --help.`);
  if (command === "list") return printOrganizations(await listOrganizations(access(values["base-url"])), values.json);
  const { name, "owner-email": email, "owner-name": ownerName = email, by = userInfo().username } = values;
  if (command === "reset-password") {
    if (email === undefined) throw new UsageError("Give --owner-email; see --help.");
    const reset = await request(access(values["base-url"]), "POST", "owner-passwords/", { email, by });
    return printReset(resetSchema.parse(reset), values.json);
  }
  if (command !== "create") throw new UsageError("Use create, reset-password or list; see --help.");
  if (name === undefined || email === undefined || ownerName === undefined)
    throw new UsageError("Give both --name and --owner-email; see --help.");
  const body = { name, owner: { email, name: ownerName }, by };
  const made = createdSchema.parse(await request(access(values["base-url"]), "POST", "organizations/", body));
  if (values.json === true) return print(JSON.stringify(made));
  print(`Organization ${made.organization.organization_id}, ${made.organization.name}, is made.`);
  print(`Its owner logs in as ${made.owner.email} with the initial password ${made.initial_password ?? ""}`);
  print("The password is not shown again; the owner changes it after the first log-in.");
}

function printReset(reset: z.infer<typeof resetSchema>, asJson = false): void {
  if (asJson) return print(JSON.stringify(reset));
  const { owner, initial_password: password, effective = true } = reset;
  if (owner.status === "suspended") print(`${owner.email} is suspended; another owner can resume this person.`);
  const logsIn = owner.status === "suspended" ? "then logs in" : "logs in";
  print(`${owner.email} ${logsIn} with the initial password ${password ?? ""}`);
  print("The password is not shown again; the owner changes it after the log-in.");
  print(effective ? "The owner's sessions have ended." : "The owner's sessions end soon, not yet at every gateway.");
}

/** The platform key comes from the environment, or else from the data folder of `npm start`. */
function access(baseUrlOption: string | undefined): PlatformAccess {
  const { baseUrl, certificateFile } = findService(baseUrlOption, process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const path = dataFile(process.env, "secrets.json");
  const key = process.env["PLATFORM_KEY"] || readJson(path, z.object({ platform_key: z.string() }))?.platform_key;
  if (key === undefined) throw new CommandError(`Set PLATFORM_KEY; ${absence(path)}.`);
  return { baseUrl, key };
}

function printOrganizations(organizations: readonly Organization[], asJson = false): void {
  if (asJson) return print(JSON.stringify({ organizations }));
  if (organizations.length === 0)
    print("There is no organization yet: make one with create --name NAME --owner-email EMAIL.");
  else print("organization\tname");
  for (const { organization_id, name } of organizations) print(`${organization_id}\t${name}`);
}

/** Throws `CommandError` when there are more than `MAX_PAGES` pages. */
async function listOrganizations(platform: PlatformAccess): Promise<Organization[]> {
  const found: Organization[] = [];
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const query = `organizations/?limit=500&since_id=${found.at(-1)?.organization_id ?? 0}`;
    const page = pageSchema.parse(await request(platform, "GET", query));
    found.push(...page.organizations);
    if (!page.has_more) return found;
  }
  throw new CommandError("There are too many organizations to list.");
}

async function request(
  { baseUrl, key }: PlatformAccess,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const url = new URL(`/api/platform/v1/${path}`, baseUrl);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const signal = AbortSignal.timeout(REQUEST_MS);
  const init = { method, headers, signal, redirect: "manual" as const };
  const response = await fetch(url, body === undefined ? init : { ...init, body: JSON.stringify(body) }).catch(
    (error: unknown) => {
      throw new CommandError(noAnswer(url.href, error));
    },
  );
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok) return answer;
  throw refusalError(answer, response.status);
}

await run(process.argv.slice(2)).catch(endWithError);
