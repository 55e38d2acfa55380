/** The command line of `npm run migrate`. */
import { parseArgs } from "node:util";
import type { BusLayout } from "../bus/stream-config.ts";
import { MOST_LOGS } from "../bus/streams.ts";
import { UserError } from "../runtime/user-error.ts";

export const MIGRATE_HELP = `Prepares an installation for this version: brings the database to its schema, and
creates or changes the streams and buckets of NATS. No process does this by itself.
Run it before the first start, and before the processes of a newer version are
started. It may run while the service works, and several at once take turns.

  npm run migrate -- [--replicas COUNT] [--logs COUNT] [--database-restored]

  --replicas COUNT   copies of each stream and bucket, 1 to 5: as many as the cluster has
                     servers. Left out, it stays as it is; a new cluster needs it. After
                     another number replace all processes.
  --logs COUNT       streams that the stations are divided among, 1 to 32: 6 on a cluster
                     of three servers, so that one server's end touches a third of the
                     stations. The first run fixes it for good, also for a later NATS. Left
                     out, it stays as it is; the first run on a cluster needs it, and on one
                     server it is 1.
  --database-restored
                     the database was restored from a backup, and NATS may be newer: empties
                     NATS, and lets all ids of the database jump behind those that were given
                     after the backup; display numbers repeat. Stop all processes before.
  --help             this text

  DATABASE_URL       the PostgreSQL; its user may create tables. Shared, secret.
  NATS_URL           one server of the NATS, or several between commas. Shared, secret.
  NATS_CREDENTIALS_FILE, NATS_KEY_FILE
                     as of every process (docs/settings.md). Secret.
  NATS_CA_FILE, NATS_CERT_FILE
                     as of every process (docs/settings.md)

  Shared: all processes of the installation that read it must have the same value.

  Exit codes: 0 done, 1 refused or not reached, 2 the arguments cannot be understood.
`;

const COUNTS = { replicas: { least: 1, most: 5 }, logs: { least: 1, most: MOST_LOGS } } as const;

interface MigrateArguments {
  readonly layout: Partial<BusLayout>;
  readonly isRestored: boolean;
}

/** `help`, or what is asked for. Throws UserError `invalid_arguments`. */
export function parseMigrateArguments(args: readonly string[]): "help" | MigrateArguments {
  const values = parsed(args);
  if (values.help === true) return "help";
  const layout: { -readonly [key in keyof BusLayout]?: number } = {};
  for (const [name, { least, most }] of Object.entries(COUNTS)) {
    const text = values[name as keyof typeof COUNTS];
    if (text === undefined) continue;
    const count = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
    if (!(count >= least && count <= most)) {
      throw wrong(`--${name} takes a whole number from ${least} to ${most}`);
    }
    layout[name as keyof typeof COUNTS] = count;
  }
  return { layout, isRestored: values["database-restored"] === true };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: "boolean", short: "h" },
        replicas: { type: "string" },
        logs: { type: "string" },
        "database-restored": { type: "boolean" },
      },
    }).values;
  } catch (error) {
    throw wrong(error instanceof Error ? error.message.replace(/\.$/, "") : "the arguments cannot be understood");
  }
}

function wrong(reason: string): UserError {
  return new UserError(`${reason}; see --help.`, { code: "invalid_arguments", exitCode: 2 });
}
