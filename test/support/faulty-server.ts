/**
 * A TCP port in front of a server that behaves as a broken pooler or a broken network does. The server need not exist.
 * It counts the connections that it accepts.
 */
import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";

/** What happens to a connection. */
export type Fault =
  /** All bytes pass. */
  | "none"
  /** The port closes it as soon as the client has sent something, or at once if the client waits for a greeting. */
  | "close"
  /** The port never answers a request. */
  | "silent"
  /** The port answers PostgreSQL's start-up with "authenticated" and "ready", and then nothing more. */
  | "ready then silent";

export interface FaultyServer {
  /** The target's address with this port. */
  readonly url: string;
  readonly port: number;
  /** Connections accepted so far. */
  dials(): number;
  /** Sets the fault from now on, for open connections too. With `silent`, their bytes are dropped. */
  become(fault: Fault): void;
  /** Closes the connections that are open. */
  cut(): void;
  stop(): Promise<void>;
}

/** AuthenticationOk and ReadyForQuery, idle. */
const READY = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);

export async function startFaultyServer(targetUrl: string, first: Fault): Promise<FaultyServer> {
  const target = new URL(targetUrl);
  const isPostgres = target.protocol.startsWith("postgres");
  const sockets = new Set<Socket>();
  let fault = first;
  let dials = 0;

  const accept = (client: Socket): void => {
    dials += 1;
    keep(client);
    if (fault === "close" && !isPostgres) return void client.end();
    let upstream: Socket | undefined;
    if (fault === "none") {
      upstream = connectTcp(Number(target.port), target.hostname);
      keep(upstream);
      // With a fault, the bytes of an open connection are dropped, and its end is not forwarded.
      upstream.on("data", (chunk: Buffer) => void (fault === "none" && client.write(chunk)));
      upstream.on("close", () => void (fault === "none" && client.destroy()));
      client.on("close", () => void (fault === "none" && upstream?.destroy()));
    }
    let isStarted = false;
    client.on("data", (chunk: Buffer) => {
      if (fault === "none") upstream?.write(chunk);
      if (fault === "close") client.end();
      if (fault === "ready then silent" && !isStarted) client.write(READY);
      isStarted = true;
    });
  };
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer(accept);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The port is not known.");
  const faulty = new URL(targetUrl);
  faulty.hostname = "127.0.0.1";
  faulty.port = String(address.port);
  return {
    url: faulty.href,
    port: address.port,
    dials: () => dials,
    become(next) {
      fault = next;
    },
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
