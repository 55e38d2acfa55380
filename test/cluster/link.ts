/**
 * A TCP proxy between a server of a cluster and another one that it dials. It carries bytes, holds them back, or refuses
 * connections. A link that is cut reports nothing, like a network. What was sent meanwhile arrives when the link is joined again.
 */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** `there` is from the server that dials to the dialled one. */
export type Direction = "there" | "back";

/** A cut link holds back this many bytes in each direction. Then it stops reading from the sender, like a full socket. */
const HELD_BYTES = 4 * 1_024 * 1_024;
/** Two servers have a separate connection for their messages to each other: votes and the copies of streams. */
const OF_SERVERS = `"route_account":"$SYS"`;

export class Link {
  readonly #targetPort: number;
  readonly #server: Server;
  readonly #pipes = new Set<Pipe>();
  readonly #cutDirections = new Set<Direction>();
  #isLagging = false;
  #delayMs = 0;
  #refusedPort: number | undefined;

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer({ pauseOnConnect: true }, (client) => this.#carry(client));
  }

  /** A link to this port of 127.0.0.1. */
  static async open(targetPort: number): Promise<Link> {
    const link = new Link(targetPort);
    link.#server.listen(0, "127.0.0.1");
    await once(link.#server, "listening");
    return link;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("The link is closed.");
    return address.port;
  }

  /** The number of connections that go through the link now. */
  get connections(): number {
    return this.#pipes.size / 2;
  }

  cut(directions: readonly Direction[] = ["there", "back"]): void {
    for (const direction of directions) this.#cutDirections.add(direction);
    for (const pipe of this.#pipes) if (this.#cutDirections.has(pipe.direction)) pipe.hold();
  }

  /** Delays every byte by this time, until the link is joined. */
  slow(delayMs: number): void {
    this.#delayMs = delayMs;
    for (const pipe of this.#pipes) pipe.delayMs = delayMs;
  }

  /** Holds back the copies of streams. What clients send to each other passes. */
  lag(): void {
    this.#isLagging = true;
    for (const pipe of this.#pipes) if (pipe.isOfServers) pipe.hold();
  }

  join(): void {
    this.#cutDirections.clear();
    this.#isLagging = false;
    this.slow(0);
    for (const pipe of this.#pipes) pipe.release();
  }

  /** Ends every connection. New connections pass. */
  reset(): void {
    for (const pipe of this.#pipes) pipe.end();
  }

  /** Ends every connection and refuses new ones, until `accept`. */
  async refuse(): Promise<void> {
    this.#refusedPort = this.port;
    await this.close();
  }

  async accept(): Promise<void> {
    this.#server.listen(this.#refusedPort, "127.0.0.1");
    await once(this.#server, "listening");
  }

  async close(): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, "close");
  }

  #carry(client: Socket): void {
    const upstream = connect(this.#targetPort, "127.0.0.1");
    const pair = [new Pipe(client, upstream, "there"), new Pipe(upstream, client, "back")];
    for (const pipe of pair) {
      this.#pipes.add(pipe);
      pipe.from.once("close", () => this.#pipes.delete(pipe));
      pipe.delayMs = this.#delayMs;
      if (this.#cutDirections.has(pipe.direction)) pipe.hold();
      pipe.from.on("data", (chunk: Buffer) => {
        if (!chunk.includes(OF_SERVERS)) return;
        for (const each of pair) {
          each.isOfServers = true;
          if (this.#isLagging) each.hold();
        }
      });
    }
    client.resume();
  }
}

/** One direction of a connection. */
class Pipe {
  readonly from: Socket;
  readonly direction: Direction;
  isOfServers = false;
  delayMs = 0;
  readonly #to: Socket;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isHolding = false;
  /** The pieces in transit, with the moment at which each arrives. */
  readonly #late: { readonly atMs: number; readonly chunk: Buffer }[] = [];

  constructor(from: Socket, to: Socket, direction: Direction) {
    this.from = from;
    this.direction = direction;
    this.#to = to;
    from.setNoDelay(true);
    from.on("error", () => from.destroy());
    from.once("close", () => {
      // The other side of a cut link learns of the end only when the link is joined again.
      if (!this.#isHolding) to.destroy();
    });
    to.on("drain", () => from.resume());
    from.on("data", (chunk: Buffer) => this.#pass(chunk));
  }

  hold(): void {
    this.#isHolding = true;
  }

  release(): void {
    this.#isHolding = false;
    for (const chunk of this.#held) this.#to.write(chunk);
    this.#held = [];
    this.#heldBytes = 0;
    if (this.from.destroyed) this.#to.destroy();
    else this.from.resume();
  }

  end(): void {
    this.from.destroy();
    this.#to.destroy();
  }

  #pass(chunk: Buffer): void {
    if (!this.#isHolding) {
      if (this.delayMs > 0 || this.#late.length > 0) this.#passLater(chunk);
      else if (!this.#to.write(chunk)) this.from.pause();
      return;
    }
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes > HELD_BYTES) this.from.pause();
  }

  #passLater(chunk: Buffer): void {
    this.#late.push({ atMs: performance.now() + this.delayMs, chunk });
    if (this.#late.length === 1) this.#passLate();
  }

  /** Passes the pieces in order: one that was sent after the link became fast again waits for the earlier ones. */
  #passLate(): void {
    for (let next = this.#late[0]; next !== undefined; next = this.#late[0]) {
      const leftMs = next.atMs - performance.now();
      if (leftMs > 0) {
        setTimeout(() => this.#passLate(), leftMs);
        return;
      }
      this.#late.shift();
      if (!this.#to.destroyed) this.#to.write(next.chunk);
    }
  }
}
