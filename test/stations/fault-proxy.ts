/**
 * A TCP proxy before nats-server that drops the messages that a test names. It parses as much of the protocol as it needs
 * to remove one whole message, so that the connection stays valid.
 */
import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";

export interface FaultProxy {
  readonly url: string;
  /** Drops the next message from the server whose text contains this. Resolves when it is dropped. */
  loseNext(text: string): Promise<void>;
  /** Drops every message from the server whose text contains this, until the returned function is called. */
  loseAll(text: string): () => void;
  /**
   * Drops the next message from the server whose text contains this, and breaks every connection at that moment. The proxy
   * accepts no new connection until the returned function is called.
   */
  cutAtNext(text: string): () => void;
  /**
   * Holds all data to the server until the returned function is called. Data from the server passes. The held data arrives
   * then, also when the client has closed its connection meanwhile, as in a slow network.
   */
  holdToServer(): () => void;
  /** The same, beginning with the first chunk whose text contains one of these. */
  holdFromFirst(texts: readonly string[]): () => void;
  /** The text that the proxy holds now. */
  held(): string;
  stop(): Promise<void>;
}

export async function startFaultProxy(natsUrl: string): Promise<FaultProxy> {
  const target = new URL(natsUrl);
  const sockets = new Set<Socket>();
  const clients = new Set<Socket>();
  let loss: { readonly text: string; readonly lost: () => void } | undefined;
  let lostText: string | undefined;
  let isCut = false;
  let kept: [upstream: Socket, chunk: Buffer, client: Socket][] = [];
  let heldClients: ReadonlySet<Socket> = new Set();
  let holdingFrom: readonly string[] = [];
  const hold = (): void => {
    heldClients = new Set(clients);
    holdingFrom = [];
  };
  const release = (): void => {
    for (const [upstream, chunk] of kept) upstream.write(chunk);
    for (const [upstream] of kept.filter(([, , client]) => client.destroyed)) upstream.end();
    kept = [];
    heldClients = new Set();
  };
  const isLost = (frame: Buffer): boolean => {
    if (lostText !== undefined && frame.includes(lostText)) return true;
    if (loss === undefined || !frame.includes(loss.text)) return false;
    const { lost } = loss;
    loss = undefined;
    lost();
    return true;
  };
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const upstream = connectTcp(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
    }
    clients.add(client);
    client.on("data", (chunk) => {
      if (holdingFrom.some((text) => chunk.includes(text))) hold();
      if (heldClients.has(client)) kept.push([upstream, chunk, client]);
      else upstream.write(chunk);
    });
    client.on("close", () => {
      clients.delete(client);
      if (!heldClients.has(client)) upstream.destroy();
    });
    upstream.on("close", () => client.destroy());
    let rest = Buffer.alloc(0);
    upstream.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (let size = frameSize(rest); size > 0 && size <= rest.length; size = frameSize(rest)) {
        const frame = rest.subarray(0, size);
        rest = rest.subarray(size);
        if (!isLost(frame)) client.write(frame);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const proxied = new URL(natsUrl);
  proxied.port = String(address.port);
  return {
    url: proxied.href,
    loseNext: (text) =>
      new Promise((lost) => {
        loss = { text, lost };
      }),
    loseAll(text) {
      lostText = text;
      return () => {
        lostText = undefined;
      };
    },
    cutAtNext(text) {
      const lost = (): void => {
        isCut = true;
        for (const socket of sockets) socket.destroy();
      };
      loss = { text, lost };
      return () => {
        isCut = false;
      };
    },
    holdToServer() {
      hold();
      return release;
    },
    holdFromFirst(texts) {
      holdingFrom = texts;
      return release;
    },
    held: () => kept.map(([, chunk]) => chunk.toString()).join(""),
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** The size of the first frame: a line, and for a message also its payload. Zero when the line is not complete yet. */
function frameSize(buffer: Buffer): number {
  const lineEnd = buffer.indexOf("\r\n");
  if (lineEnd < 0) return 0;
  const line = buffer.subarray(0, lineEnd).toString();
  if (!/^H?MSG /.test(line)) return lineEnd + 2;
  return lineEnd + 2 + Number(line.slice(line.lastIndexOf(" ") + 1)) + 2;
}
