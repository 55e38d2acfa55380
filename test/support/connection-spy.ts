/**
 * A TCP relay between a proxy and the gateway that records how each connection ended. It also forces a race that short
 * idle times at the proxy avoid: when a request arrives after more than `idleMs` without a byte, the relay closes the
 * connection, as the gateway does when its idle timeout ends at that moment.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface SpiedConnection {
  /** How many pieces of data (TCP reads) the proxy has sent. */
  pieces: number;
  /** The side that ended it. Undefined while it is open. `race` means that this relay ended it in place of the gateway. */
  endedBy?: "proxy" | "gateway" | "race";
  /** How long the connection had been idle in both directions when it ended. */
  idleMs?: number;
}

export interface ConnectionSpy {
  readonly port: number;
  readonly connections: readonly SpiedConnection[];
  stop(): Promise<void>;
}

export async function spyConnections(options: {
  readonly to: number;
  readonly idleMs: number;
}): Promise<ConnectionSpy> {
  const connections: SpiedConnection[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((fromProxy) => {
    const connection: SpiedConnection = { pieces: 0 };
    connections.push(connection);
    const toGateway = connect(options.to, "127.0.0.1");
    let lastMs = performance.now();
    const end = (endedBy: NonNullable<SpiedConnection["endedBy"]>): void => {
      connection.endedBy ??= endedBy;
      connection.idleMs ??= performance.now() - lastMs;
      fromProxy.destroy();
      toGateway.destroy();
    };
    for (const [socket, name] of [
      [fromProxy, "proxy"],
      [toGateway, "gateway"],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.on("end", () => end(name));
      socket.on("close", () => {
        end(name);
        sockets.delete(socket);
      });
    }
    fromProxy.on("data", (piece) => {
      if (connection.pieces > 0 && performance.now() - lastMs > options.idleMs) return end("race");
      connection.pieces += 1;
      lastMs = performance.now();
      toGateway.write(piece);
    });
    toGateway.on("data", (piece) => {
      lastMs = performance.now();
      fromProxy.write(piece);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
