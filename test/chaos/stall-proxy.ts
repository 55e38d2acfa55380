/** A TCP proxy that can stall like a network, and later deliver the bytes that were sent meanwhile. */
import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";

export interface StallProxy {
  /** The target's address with the proxy's port. */
  readonly url: string;
  /** Stops all bytes in both directions. New connections are accepted, and their bytes are stopped too. */
  stall(): void;
  /**
   * Delivers the bytes that were sent meanwhile, in order and slowly, like a network with a long queue. Old bytes arrive long
   * before new ones.
   */
  resume(): void;
  stop(): Promise<void>;
}

/** The rate of delayed bytes. After a stall of some seconds, their delivery takes a few seconds. */
const PIECE_BYTES = 256;
const PIECE_EVERY_MS = 20;

export async function startStallProxy(targetUrl: string): Promise<StallProxy> {
  const target = new URL(targetUrl);
  const directions = new Set<Direction>();
  let isStalled = false;
  const server = createServer((client) => {
    const upstream = connectTcp(Number(target.port), target.hostname);
    for (const direction of [new Direction(client, upstream), new Direction(upstream, client)]) {
      directions.add(direction);
      direction.from.on("close", () => directions.delete(direction));
      if (isStalled) direction.stall();
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
      for (const direction of directions) direction.stall();
    },
    resume() {
      isStalled = false;
      for (const direction of directions) direction.resume();
    },
    async stop() {
      for (const { from } of directions) from.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** One direction of a connection. */
class Direction {
  readonly from: Socket;
  readonly #to: Socket;
  #held = Buffer.alloc(0);
  #isStalled = false;
  #release: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket) {
    this.from = from;
    this.#to = to;
    from.on("error", () => from.destroy());
    from.on("close", () => {
      clearInterval(this.#release);
      to.destroy();
    });
    from.on("data", (chunk: Buffer) => {
      if (this.#isStalled || this.#release !== undefined) this.#held = Buffer.concat([this.#held, chunk]);
      else to.write(chunk);
    });
  }

  stall(): void {
    this.#isStalled = true;
    clearInterval(this.#release);
    this.#release = undefined;
  }

  resume(): void {
    if (!this.#isStalled) return;
    this.#isStalled = false;
    this.#release = setInterval(() => {
      this.#to.write(this.#held.subarray(0, PIECE_BYTES));
      this.#held = this.#held.subarray(PIECE_BYTES);
      if (this.#held.length > 0) return;
      clearInterval(this.#release);
      this.#release = undefined;
    }, PIECE_EVERY_MS);
  }
}
