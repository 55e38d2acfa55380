/** A proxy in front of a receiver: it accepts connections, and forwards no byte until it is opened. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Receiver } from "./receiver.ts";

export interface HoldingProxy {
  url(path: string): string;
  /** The number of connections that wait. */
  waiting(): number;
  /** From now on it forwards new connections at once; those that wait keep waiting. */
  openForLater(): void;
  /** Forwards the waiting connections as well. */
  openForAll(): void;
  stop(): Promise<void>;
}

export async function startHoldingProxy(receiver: Receiver): Promise<HoldingProxy> {
  const sockets = new Set<Socket>();
  let waiting: Socket[] = [];
  let isOpen = false;
  const pass = (client: Socket): void => {
    const upstream = connect(Number(new URL(receiver.url("/")).port), "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      // A process that is frozen or killed may end a connection in any way.
      socket.on("error", () => undefined).on("close", () => void [client.destroy(), upstream.destroy()]);
    }
    client.pipe(upstream).pipe(client);
  };
  const server = createServer((client) => {
    if (isOpen) return pass(client);
    client.on("error", () => undefined);
    waiting.push(client);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: (path) => `https://localhost:${port}${path}`,
    waiting: () => waiting.length,
    openForLater() {
      isOpen = true;
    },
    openForAll() {
      isOpen = true;
      for (const client of waiting) pass(client);
      waiting = [];
    },
    async stop() {
      for (const socket of [...sockets, ...waiting]) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
