/** The processes that the files of `deploy/production` start: their arguments, and the settings that they are given. */
import { expect } from "vitest";
import { GATEWAY_DESCRIPTION } from "../../gateway/settings.ts";
import { describeServices, SERVICES } from "../../services/catalogue.ts";
import { parseMigrateArguments } from "../../services/db/migrate-arguments.ts";
import { settingsOf } from "../../services/runtime/settings-help.ts";

/** What the preparation of database and bus reads. */
const MIGRATE = { needed: ["NATS_URL", "DATABASE_URL"], known: ["NATS_URL", "DATABASE_URL", "LOG_LEVEL"] };

/** Names of settings for the process that is started with these arguments of Node. Throws for one that does not exist. */
export async function settingsOfArguments(
  args: readonly string[],
): Promise<{ readonly needed: readonly string[]; readonly known: readonly string[] }> {
  const [script, ...names] = args;
  if (script === "services/migrate.ts") {
    // Throws for unknown arguments.
    parseMigrateArguments(names);
    return MIGRATE;
  }
  const isGateway = script === "gateway/main.ts" && names.length === 0;
  const areServices = script === "services/main.ts" && names.length > 0 && names.every((name) => name in SERVICES);
  if (!isGateway && !areServices) throw new Error(`No process is started by ${args.join(" ")}.`);
  const settings = settingsOf(isGateway ? GATEWAY_DESCRIPTION : await describeServices(names));
  return {
    needed: settings.filter(({ isNeeded }) => isNeeded).map(({ name }) => name),
    known: settings.map(({ name }) => name),
  };
}

/** Expects that a process is given what it needs, and no secret or other setting that it does not read. */
export async function expectSettings(
  args: readonly string[],
  given: readonly string[],
  also: readonly string[] = [],
): Promise<void> {
  const { needed, known } = await settingsOfArguments(args);
  expect(given, args.join(" ")).toEqual(expect.arrayContaining([...needed]));
  expect(
    given.filter((name) => !known.includes(name) && !also.includes(name)),
    args.join(" "),
  ).toEqual([]);
}
