/**
 * Makes organizations with their first owners, and lists them, with the platform key.
 *
 *   npm run organization -- --help
 */
import { userInfo } from "node:os";
import { HELP, parseCommand, UsageError } from "./organization/arguments.ts";
import {
  createOrganization,
  findService,
  listOrganizations,
  PlatformError,
  readPlatformKey,
} from "./organization/platform-api.ts";
import { trustCertificate } from "./trusted-certificate.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function run(args: readonly string[]): Promise<void> {
  const command = parseCommand(args);
  if (command.name === "help") return void process.stdout.write(HELP);
  const { baseUrl, certificateFile } = findService(command.baseUrl, process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const access = { baseUrl, key: readPlatformKey(process.env) };
  if (command.name === "list") {
    const organizations = await listOrganizations(access);
    if (command.json) return print(JSON.stringify({ organizations }));
    for (const { organization_id, name } of organizations) print(`${organization_id}\t${name}`);
    return;
  }
  const { organization: name, ownerEmail: email, ownerName = email, by = userInfo().username } = command;
  const made = await createOrganization(access, { name, owner: { email, name: ownerName }, by });
  if (command.json) return print(JSON.stringify(made));
  print(`Organization ${made.organization.organization_id}, ${made.organization.name}, is made.`);
  print(`Its owner logs in as ${made.owner.email} with the initial password ${made.initial_password ?? ""}`);
  print("The password is shown this once; the owner changes it after the first log-in.");
}

try {
  await run(process.argv.slice(2));
} catch (error) {
  const isKnown = error instanceof UsageError || error instanceof PlatformError;
  process.stderr.write(`${isKnown ? error.message : "The service's answer cannot be understood."}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
