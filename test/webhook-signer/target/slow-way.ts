/** A proxy in front of a target that delays the first bytes: the TLS handshake takes as long as a test sets. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface SlowWay {
  readonly port: number;
  close(): Promise<void>;
}

/** Accepts at once. Bytes to the target wait until `handshakeMs` after that; bytes from the target do not wait. */
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
