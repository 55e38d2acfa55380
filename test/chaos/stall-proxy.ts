/** A TCP proxy that can fall silent without a word, as a network does, and go on later with what was sent meanwhile. */
import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";

export interface StallProxy {
  /** The target's address with the proxy's port. */
  readonly url: string;
  /** Nothing passes any more, in either direction; new connections are taken and stay silent as well. */
  stall(): void;
  resume(): void;
  stop(): Promise<void>;
}

export async function startStallProxy(targetUrl: string): Promise<StallProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let isStalled = false;
  const server = createServer((client) => {
    const upstream = connectTcp(Number(target.port), target.hostname);
    const pair = [
      [client, upstream],
      [upstream, client],
    ] as const;
    for (const [from, to] of pair) {
      sockets.add(from);
      from.on("error", () => from.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      // Written by hand: a pipe would take the pause of a stall back.
      from.on("data", (chunk: Buffer) => to.write(chunk));
      if (isStalled) from.pause();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const own = new URL(targetUrl);
  own.port = String(address.port);
  return {
    url: own.href,
    stall() {
      isStalled = true;
      for (const socket of sockets) socket.pause();
    },
    resume() {
      isStalled = false;
      for (const socket of sockets) socket.resume();
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
