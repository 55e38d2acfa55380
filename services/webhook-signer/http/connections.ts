/**
 * Open connections. Each is a separate undici client: a pool of undici would open connections by itself, and would not
 * show which connection and which times belong to an attempt. Connections without work wait here for the next delivery
 * to the same origin.
 */
import type { Socket } from "node:net";
import { Client } from "undici";
import { TARGET_LIMITS } from "../limits.ts";

export interface Connection {
  readonly origin: string;
  readonly client: Client;
  /** The address at the other end; null when the connection has ended. */
  readonly address: string | null;
  readonly openedAt: number;
  readonly isAlive: boolean;
  /** Bytes that came in so far, the head of answers and all framing included. */
  readonly bytesRead: number;
  /** Sets the only listener for incoming bytes; null removes it. */
  watchReads(onRead: (() => void) | null): void;
  /** Ends the connection; a request under way fails. */
  destroy(): void;
}

interface ConnectionOptions {
  /** How long the connection waits for the next request before it ends. */
  readonly idleMs: number;
  /** Called once, when the connection has ended. */
  readonly onClosed: (connection: Connection) => void;
}

/** Makes a connection from an open socket. */
export function createConnection(origin: string, socket: Socket, { idleMs, onClosed }: ConnectionOptions): Connection {
  let isGiven = false;
  let onRead: (() => void) | null = null;
  const client = new Client(origin, {
    // undici opens another connection when the first has ended, perhaps to another process at that address. Here it
    // cannot.
    connect: (_options, callback) => {
      if (isGiven) return callback(new Error("The connection has ended."), null);
      isGiven = true;
      // Not at once, because undici would miss an answer that comes during this call.
      queueMicrotask(() => callback(null, socket));
    },
    allowH2: false,
    pipelining: 1,
    maxHeaderSize: TARGET_LIMITS.headBytes,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    // The attempt has one deadline. undici's time-outs are off, because they restart with every chunk of a body.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const connection: Connection = {
    origin,
    client,
    openedAt: performance.now(),
    get address() {
      return socket.remoteAddress ?? null;
    },
    get isAlive() {
      return !socket.destroyed && !client.destroyed;
    },
    get bytesRead() {
      return socket.bytesRead;
    },
    watchReads(next) {
      onRead = next;
    },
    destroy() {
      socket.destroy();
      void client.destroy();
    },
  };
  socket.on("readable", () => onRead?.());
  socket.once("close", () => {
    void client.destroy();
    onClosed(connection);
  });
  return connection;
}

interface IdleConnections {
  /** Takes the connection used last, because the target is least likely to close it. Undefined when there is none. */
  take(origin: string): Connection | undefined;
  /** Keeps a connection, or ends it when it is too old; with too many, the one that has waited longest is ended. */
  put(connection: Connection): void;
  remove(connection: Connection): void;
  readonly count: number;
  close(): void;
}

/** The defaults are in `TARGET_LIMITS`. */
type IdleBounds = Readonly<Record<"connectionMs" | "idleConnections" | "idleConnectionsPerTarget", number>>;

/**
 * A connection keeps the address that was checked when it was opened. When a host's name changes to a private address, reuse
 * does not reach that address; the next look-up, at most `connectionMs` later, refuses it. The sender still checks the address
 * of each connection before it uses it again.
 */
export function createIdleConnections(bounds: Partial<IdleBounds> = {}): IdleConnections {
  const { connectionMs, idleConnections, idleConnectionsPerTarget } = { ...TARGET_LIMITS, ...bounds };
  const isUsable = ({ isAlive, openedAt }: Connection): boolean =>
    isAlive && performance.now() - openedAt < connectionMs;
  /** The connections of each origin, the one used last at the end. */
  const byOrigin = new Map<string, Connection[]>();
  /** All connections, the one that has waited longest first. */
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
