/**
 * How an answer goes out, in one of three ways:
 *
 *   with a body, the connection stays     what the client does not take waits, bounded (`unsent-answers.ts`)
 *   and then the connection ends          written whole, without the server's `end`, and closed in the next turn
 *   without a body, the connection stays  for known callers only: the server does not report what waits of it
 *
 * The second way does not use the server's own flag to close a connection: with it the server first answers what else has
 * arrived in the same packet, and never closes if the client does not read. Here the response counts as pending until it
 * is closed, so a request behind it closes the connection at once.
 *
 * All but the polls of known devices, which their throttle bounds, are answered in the turn behind their request: the server
 * handles all requests that it has read of a connection in one turn, thousands of them, and keeps everyone else waiting. As
 * long as one is not answered, the next one behind it closes the connection. So of requests that a client sends without
 * waiting for answers one is handled in a turn, and the connection ends.
 */
import type { HttpResponse } from "uWebSockets.js";
import { CONNECTION_LIMITS } from "./limits.ts";
import { type Answer, statusLine } from "./response.ts";
import type { UnsentAnswers } from "./unsent-answers.ts";

export interface WriteOptions {
  readonly isHead: boolean;
  /** Ends the connection as well. */
  readonly close: boolean;
  /** A known caller's connection stays open behind an answer without a body. */
  readonly isKnownCaller?: boolean;
  /** Called when the answer is written or, where that ends the connection, when it is closed. */
  readonly onWritten?: ((isClosed: boolean) => void) | undefined;
}

export class AnswerWriter {
  readonly #unsent: UnsentAnswers;
  #bodiless = 0;

  constructor(unsent: UnsentAnswers) {
    this.#unsent = unsent;
  }

  /** For an answer within the turn of its request: writes it in the next turn. */
  writeSoon(res: HttpResponse, answer: Answer, options: WriteOptions): void {
    let isGone = false;
    res.onAborted(() => {
      isGone = true;
    });
    setImmediate(() => {
      if (!isGone) this.write(res, answer, options);
    });
  }

  write(res: HttpResponse, answer: Answer, options: WriteOptions): void {
    const { isHead, close, isKnownCaller = false, onWritten } = options;
    const { body } = answer;
    if (body === undefined || body === "" || isHead) {
      if (!close && isKnownCaller && !isHead && this.#staysOpen()) endWithoutBody(res, answer);
      else return closeBehind(res, answer, options);
    } else if (close && typeof body === "string" && Buffer.byteLength(body) <= CONNECTION_LIMITS.closingAnswerBytes) {
      return closeBehind(res, answer, options);
    } else {
      res.cork(() => {
        writeHead(res, answer);
        // A large answer must arrive first. Its client closes then, or the server does after ten seconds.
        if (close) res.writeHeader("Connection", "close");
        this.#unsent.send(res, body);
      });
    }
    onWritten?.(false);
  }

  /** Ends a response whose head is written. */
  send(res: HttpResponse, body: string): void {
    this.#unsent.send(res, body);
  }

  #staysOpen(): boolean {
    this.#bodiless = (this.#bodiless + 1) % CONNECTION_LIMITS.bodilessInARow;
    return this.#bodiless !== 0;
  }
}

function writeHead(res: HttpResponse, answer: Pick<Answer, "status" | "headers" | "cookies">): void {
  res.writeStatus(statusLine(answer.status));
  for (const name in answer.headers) res.writeHeader(name, answer.headers[name] as string);
  for (const cookie of answer.cookies ?? []) res.writeHeader("Set-Cookie", cookie);
}

function endWithoutBody(res: HttpResponse, answer: Answer): void {
  res.cork(() => {
    writeHead(res, answer);
    res.endWithoutBody();
  });
}

/**
 * Writes the end of the head, and the body, as part of the last header's value: the server writes a value as it is and
 * ends it with a line break, which is the empty line behind a head and white space behind JSON.
 */
function closeBehind(res: HttpResponse, { status, headers, cookies, body }: Answer, options: WriteOptions): void {
  let isOver = false;
  res.onAborted(() => {
    isOver = true;
    options.onWritten?.(true);
  });
  // The server's own `end` would write it.
  const date = new Date().toUTCString();
  res.cork(() => {
    writeHead(res, { status, headers, cookies });
    res.writeHeader("Connection", "close");
    if (status === 204 || status === 304) res.writeHeader("Date", `${date}\r\n`);
    else {
      res.writeHeader("Date", date);
      res.writeHeader("Content-Length", lengthAndBody(body ?? "", options.isHead));
    }
  });
  setImmediate(() => {
    if (!isOver) res.close();
  });
}

function lengthAndBody(body: string | Uint8Array, isHead: boolean): string {
  const length = Buffer.byteLength(body);
  if (isHead || typeof body !== "string" || length === 0) return `${length}\r\n`;
  return `${length + "\r\n".length}\r\n\r\n${body}`;
}
