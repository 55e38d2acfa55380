/** Requests as bytes on a socket, such as a correct HTTP client never sends. */
import { connect } from "node:net";

export interface RawAnswer {
  /** 0 when the server closed without an answer. */
  readonly status: number;
  readonly head: string;
  readonly body: string;
  /** Whether the server ended the connection. */
  readonly isClosed: boolean;
  readonly elapsedMs: number;
}

/**
 * Sends the pieces with pauses between them. Reads until the server ends the connection, has sent `answers` complete answers
 * without `Connection: close`, or `waitMs` has passed. With `inTurn`, each piece waits for the answer to the piece before it,
 * so that the server never reads two of them at once.
 */
export async function sendRaw(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  options: {
    readonly pauseMs?: number;
    readonly waitMs?: number;
    readonly endAfter?: boolean;
    readonly answers?: number;
    readonly inTurn?: boolean;
  } = {},
): Promise<RawAnswer> {
  const startedAtMs = performance.now();
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  let text = "";
  const { promise: done, resolve } = Promise.withResolvers<boolean>();
  let answered = Promise.withResolvers<void>();
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    // A server may announce the end of the connection some time before it ends it.
    answered.resolve();
    if (/\r\nconnection: close\r\n/i.test(text)) return;
    if (completeAnswers(text) >= (options.answers ?? 1))
      setTimeout(() => resolve(socket.closed || socket.readableEnded), 50);
  });
  socket.on("close", () => resolve(true));
  socket.on("end", () => resolve(true));
  const timer = setTimeout(() => resolve(false), options.waitMs ?? 10_000);
  for (const [index, piece] of pieces.entries()) {
    if (index > 0 && options.inTurn === true) await Promise.race([answered.promise, done]);
    else if (index > 0) await new Promise((next) => setTimeout(next, options.pauseMs ?? 20));
    answered = Promise.withResolvers<void>();
    if (socket.writable) socket.write(piece);
  }
  if (options.endAfter === true) socket.end();
  const isClosed = await done;
  clearTimeout(timer);
  socket.destroy();
  const cut = text.indexOf("\r\n\r\n");
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0),
    head: cut < 0 ? text : text.slice(0, cut),
    body: cut < 0 ? "" : text.slice(cut + 4),
    isClosed,
    elapsedMs: performance.now() - startedAtMs,
  };
}

/** How many complete answers with a length the text begins with. */
function completeAnswers(text: string): number {
  const cut = text.indexOf("\r\n\r\n");
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, cut + 2))?.[1];
  if (cut < 0 || length === undefined) return 0;
  const end = cut + 4 + Number(length);
  return text.length < end ? 0 : 1 + completeAnswers(text.slice(end));
}
