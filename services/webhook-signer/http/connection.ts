/**
 * One open connection as an undici client of its own. A pool of undici's would open connections whenever it likes, and
 * nobody could tell which of its connections, and which times, belong to an attempt.
 */
import type { Socket } from "node:net";
import { Client } from "undici";
import { TARGET_LIMITS } from "../limits.ts";

export interface Connection {
  readonly origin: string;
  readonly client: Client;
  /** Who is at the other end; null when it has gone. */
  readonly address: string | null;
  readonly openedAt: number;
  readonly isAlive: boolean;
  /** Bytes that came in so far, the head of answers and all framing included. */
  readonly bytesRead: number;
  /** Called whenever bytes have come in; one at a time, null for none. */
  watchReads(onRead: (() => void) | null): void;
  /** Ends it; a request under way fails. */
  destroy(): void;
}

export interface ConnectionOptions {
  /** How long it waits for the next request before it ends. */
  readonly idleMs: number;
  /** Called once, when the connection has ended. */
  readonly onClosed: (connection: Connection) => void;
}

/** Takes the socket over. */
export function createConnection(origin: string, socket: Socket, { idleMs, onClosed }: ConnectionOptions): Connection {
  let isGiven = false;
  let onRead: (() => void) | null = null;
  const client = new Client(origin, {
    // A client whose connection ended would open another, to whoever is there now: this one cannot.
    connect: (_options, callback) => {
      if (isGiven) return callback(new Error("The connection has ended."), null);
      isGiven = true;
      // Later, because undici would miss an answer that comes while it asks.
      queueMicrotask(() => callback(null, socket));
    },
    allowH2: false,
    pipelining: 1,
    maxHeaderSize: TARGET_LIMITS.headBytes,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    // One deadline holds over everything, and undici's would begin anew with every piece of a body.
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
