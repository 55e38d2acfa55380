/** How the connections to PostgreSQL that a process may open are divided among its services. */
import { UserError } from "./user-error.ts";

interface Wanted {
  /** It works with fewer, and not with fewer than this. */
  readonly least: number;
  /** As many as it can make good use of on a machine of its own. */
  readonly most: number;
}

const WANTED: Readonly<Record<string, Wanted>> = {
  registry: { least: 2, most: 10 },
  settlement: { least: 2, most: 8 },
  /** The copiers have connections of their own. */
  audit: { least: 3, most: 6 },
  providers: { least: 4, most: 16 },
  robotics: { least: 2, most: 10 },
  "webhook-signer": { least: 3, most: 12 },
  "sandbox-provider": { least: 2, most: 6 },
  /** One of them holds the lease. */
  relay: { least: 3, most: 11 },
};

/** The one by which a process shows the others how many it may open (`db/connection-check.ts`). */
const OWN = 1;

export interface ConnectionShares {
  /** All of the process. */
  readonly total: number;
  /** By service; a service that needs no database has none. */
  readonly of: ReadonlyMap<string, number>;
}

/**
 * `total` undefined: each service gets as many as it can use. Throws UserError `invalid_setting` for fewer than the
 * services need.
 */
export function shareConnections(names: readonly string[], total: number | undefined): ConnectionShares {
  const wanted = names.flatMap((name) => {
    const found = WANTED[name];
    return found === undefined ? [] : [{ name, ...found }];
  });
  if (wanted.length === 0) return { total: 0, of: new Map() };
  const sum = (of: (each: Wanted) => number): number => wanted.reduce((count, each) => count + of(each), OWN);
  const [least, most] = [sum((each) => each.least), sum((each) => each.most)];
  const given = total ?? most;
  if (given < least) {
    const sentence = `The setting DATABASE_CONNECTIONS is not usable: ${names.join(", ")} in one process need at least ${least}.`;
    throw new UserError(sentence, { code: "invalid_setting" });
  }
  const extra = (given - least) / (most - least);
  const of = new Map(wanted.map((each) => [each.name, each.least + Math.floor((each.most - each.least) * extra)]));
  return { total: given, of };
}
