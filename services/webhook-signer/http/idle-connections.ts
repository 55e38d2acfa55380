/** Open connections that wait for the next delivery to the same origin. */
import { TARGET_LIMITS } from "../limits.ts";
import type { Connection } from "./connection.ts";

export interface IdleConnections {
  /** The one used last, because it is the least likely to be closed by the target; undefined when there is none. */
  take(origin: string): Connection | undefined;
  /** Keeps a connection, or ends it when it is too old; with too many, the one that has waited longest is ended. */
  put(connection: Connection): void;
  remove(connection: Connection): void;
  readonly count: number;
  close(): void;
}

/** As in `TARGET_LIMITS`, which hold for all that is left out. */
export type IdleBounds = Readonly<Record<"connectionMs" | "idleConnections" | "idleConnectionsPerTarget", number>>;

/**
 * A connection stays with the address that was checked when it was opened: no later answer of a name server moves it. So a
 * host whose name now leads to a private address is not reached there by reuse; it is noticed at the next look-up, which is
 * at most `connectionMs` away. Whoever takes one holds its address against the rule again all the same.
 */
export function createIdleConnections(bounds: Partial<IdleBounds> = {}): IdleConnections {
  const { connectionMs, idleConnections, idleConnectionsPerTarget } = { ...TARGET_LIMITS, ...bounds };
  const isUsable = ({ isAlive, openedAt }: Connection): boolean =>
    isAlive && performance.now() - openedAt < connectionMs;
  /** By origin, the one used last at the end. */
  const byOrigin = new Map<string, Connection[]>();
  /** All of them, the one that has waited longest first. */
  const all = new Set<Connection>();

  const remove = (connection: Connection): void => {
    if (!all.delete(connection)) return;
    const others = byOrigin.get(connection.origin)?.filter((other) => other !== connection) ?? [];
    if (others.length === 0) byOrigin.delete(connection.origin);
    else byOrigin.set(connection.origin, others);
  };
  const end = (connection: Connection | undefined): void => {
    if (connection === undefined) return;
    remove(connection);
    connection.destroy();
  };

  return {
    take(origin) {
      for (;;) {
        const connection = byOrigin.get(origin)?.at(-1);
        if (connection === undefined) return undefined;
        remove(connection);
        if (isUsable(connection)) return connection;
        connection.destroy();
      }
    },
    put(connection) {
      if (!isUsable(connection)) return connection.destroy();
      const same = byOrigin.get(connection.origin) ?? [];
      byOrigin.set(connection.origin, [...same, connection]);
      all.add(connection);
      if (same.length >= idleConnectionsPerTarget) end(same[0]);
      if (all.size > idleConnections) end(all.values().next().value);
    },
    remove,
    get count() {
      return all.size;
    },
    close() {
      for (const connection of all) end(connection);
    },
  };
}
