/** For which waits of an upload its client answers: those for its pieces, and never those for the store. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Exchange } from "../../gateway/http/exchange.ts";
import { streamBody } from "../../gateway/http/stream-body.ts";
import { LIMITS } from "../../gateway/limits.ts";

const TOO_LONG_MS = LIMITS.requestTimeoutMs + 1_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** An upload, and how its client sends a piece. */
function startUpload() {
  let take: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;
  const nothing = (): void => undefined;
  const exchange = {
    facts: { address: "192.0.2.1" },
    unread: { begin: nothing, end: nothing },
    res: {
      onData(handler: typeof take) {
        take = handler;
      },
      pause: nothing,
      resume: nothing,
    },
    deadlineMs: performance.now() + LIMITS.requestTimeoutMs,
    onDeadline: nothing,
  };
  const body = streamBody(exchange as unknown as Exchange, 100);
  return {
    pieces: body.pieces[Symbol.asyncIterator](),
    sendPiece: (isLast = false) => take(new ArrayBuffer(10), isLast),
    /** The server checks the deadlines of its exchanges on a timer. */
    pass: (timeMs: number) => {
      vi.advanceTimersByTime(timeMs);
      if (performance.now() > exchange.deadlineMs) exchange.onDeadline();
    },
  };
}

describe("an upload", () => {
  it("its handler takes longer to store a piece than a client may take to send one: the upload continues", async () => {
    const { pieces, sendPiece, pass } = startUpload();
    sendPiece();
    expect((await pieces.next()).value).toHaveLength(10);
    pass(TOO_LONG_MS);
    const next = pieces.next();
    sendPiece(true);
    expect((await next).value).toHaveLength(10);
    pass(TOO_LONG_MS);
    expect(await pieces.next()).toMatchObject({ done: true });
  });

  it("the whole body has arrived before the handler has read it: the handler still gets all of it", async () => {
    const { pieces, sendPiece, pass } = startUpload();
    sendPiece();
    sendPiece(true);
    for (let piece = 0; piece < 2; piece += 1) {
      expect((await pieces.next()).value).toHaveLength(10);
      pass(TOO_LONG_MS);
    }
    expect(await pieces.next()).toMatchObject({ done: true });
  });

  it("its client sends nothing while the handler waits for a piece: `request_timeout`", async () => {
    const { pieces, sendPiece, pass } = startUpload();
    sendPiece();
    await pieces.next();
    const next = pieces.next();
    pass(TOO_LONG_MS);
    await expect(next).rejects.toMatchObject({ code: "request_timeout" });
  });
});
