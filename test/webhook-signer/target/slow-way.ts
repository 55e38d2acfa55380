/** A way to a target on which what is sent first waits: its handshake of TLS takes as long as a test wants. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface SlowWay {
  readonly port: number;
  close(): Promise<void>;
}

/** Connects at once; what goes to the port behind it waits for `handshakeMs` after that, what comes back does not. */
export async function startSlowWay(port: number, handshakeMs: number): Promise<SlowWay> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const behind = connect(port, "127.0.0.1");
    sockets.push(socket, behind);
    for (const each of [socket, behind]) each.on("error", () => undefined);
    socket.on("close", () => behind.destroy());
    behind.pipe(socket);
    socket.pause();
    setTimeout(() => socket.pipe(behind), handshakeMs);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
