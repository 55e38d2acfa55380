/** Prepares database and bus for this version: `npm run migrate`, or `node services/migrate.ts --replicas 3`. */
import { MIGRATE_HELP, parseMigrateArguments } from "./db/migrate-arguments.ts";
import { migrateInstallation } from "./db/migrate-installation.ts";
import { exitWith } from "./runtime/lifecycle.ts";
import { parseSettings, requireDatabaseUrl, sharedSettingsSchema } from "./runtime/settings.ts";

async function main(args: readonly string[]): Promise<void> {
  const asked = parseMigrateArguments(args);
  if (asked === "help") return void process.stdout.write(MIGRATE_HELP);
  const settings = parseSettings(sharedSettingsSchema, process.env);
  await migrateInstallation({
    databaseUrl: requireDatabaseUrl(settings),
    natsUrl: settings.natsUrl,
    natsAccess: settings.natsAccess,
    ...asked,
    log: (line) => void process.stdout.write(`${line}\n`),
  });
}

main(process.argv.slice(2)).catch(exitWith);
