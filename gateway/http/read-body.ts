/** Reads a request body, bounded in size and time. Call `readBody` before the first await of the request. */

import { addressBlock } from "../../services/bus/address-block.ts";
import { LIMITS } from "../limits.ts";
import type { Exchange } from "./exchange.ts";
import { ApiError } from "./handler-context.ts";
import type { UnreadBody } from "./request-bounds.ts";
import type { Route } from "./route.ts";

/** The client closed the connection before its body had arrived: the server cannot answer. */
export class ClientGoneError extends Error {
  constructor() {
    super("The client went away.");
    this.name = "ClientGoneError";
  }
}

/** The maximum bytes of a route's body. */
export const mostBytesOf = ({ bodyBytes = LIMITS.bodyBytes }: Pick<Route, "bodyBytes">): number => bodyBytes;

/** Rejects with `body_too_large`, `request_timeout` or `ClientGoneError`. */
export function readBody(exchange: Exchange, mostBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  let isDone = false;
  const settle = (act: () => void): void => {
    if (isDone) return;
    isDone = true;
    exchange.onGone = () => undefined;
    exchange.unread.end(body);
    exchange.deadlineMs = exchange.startedAtMs + LIMITS.requestTimeoutMs;
    act();
  };
  const body: UnreadBody = {
    block: addressBlock(exchange.facts.address),
    isKnownCaller: exchange.isKnownCaller,
    close: () => settle(() => closeSoon(exchange, reject)),
    bytes: 0,
  };
  exchange.readsBody = true;
  exchange.isBodyUnread = true;
  exchange.deadlineMs = exchange.startedAtMs + LIMITS.bodyTimeoutMs;
  exchange.onDeadline = () => settle(() => reject(new ApiError("request_timeout")));
  exchange.onGone = () => settle(() => reject(new ClientGoneError()));
  exchange.res.onData((chunk, isLast) => {
    if (isDone) return;
    size += chunk.byteLength;
    if (size > mostBytes) {
      settle(() => reject(new ApiError("body_too_large")));
      return;
    }
    // A copy, because the server reuses the memory of the chunk after this call.
    chunks.push(Buffer.from(new Uint8Array(chunk)));
    if (!isLast) return exchange.unread.add(body, chunk.byteLength);
    exchange.isBodyUnread = false;
    settle(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size)));
  });
  exchange.unread.begin(body);
  return promise;
}

/** Closes in the next turn, because the server may still be processing data of this connection. */
function closeSoon(exchange: Exchange, reject: (error: Error) => void): void {
  reject(new ClientGoneError());
  setImmediate(() => {
    if (!exchange.isOver) exchange.res.close();
  });
}

/** Whether the headers announce a body above the limit: then the server can answer before it arrives. */
export function announcesTooMuch(contentLength: string | undefined, mostBytes: number): boolean {
  return contentLength !== undefined && Number(contentLength) > mostBytes;
}
