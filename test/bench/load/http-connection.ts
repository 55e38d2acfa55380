/** One keep-alive connection that sends one request at a time and measures in microseconds when it sent the request. */
import { connect, type Socket } from "node:net";
import { clockMs } from "./clock.ts";
import { answerLength } from "./http-load.ts";

export interface TimedAnswer {
  readonly status: string;
  /** By the clock that all processes of one machine share. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

export class HttpConnection {
  readonly #port: number;
  #socket: Socket | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends a ready-made request; rejects when the connection breaks before the answer is there. */
  async send(request: Buffer): Promise<TimedAnswer> {
    // The server closes an idle connection. Opening another one is not part of the measured time.
    const socket = this.#socket?.readyState === "open" ? this.#socket : await this.#open();
    return await new Promise((resolve, reject) => {
      let received: Buffer = Buffer.alloc(0);
      const onEnd = (): void => reject(new Error("The server closed the connection."));
      const onData = (chunk: Buffer): void => {
        const answeredAtMs = clockMs();
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
        const total = answerLength(received);
        if (total === undefined || received.length < total) return;
        socket.off("data", onData).off("close", onEnd);
        resolve({ status: received.toString("latin1", 9, 12), sentAtMs, answeredAtMs });
      };
      socket.on("data", onData).once("close", onEnd);
      const sentAtMs = clockMs();
      socket.write(request);
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  async #open(): Promise<Socket> {
    const socket = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    // A `close` event follows each error, and `send` rejects by it.
    socket.on("error", () => undefined);
    this.#socket = socket;
    return socket;
  }
}
