/**
 * One cashier's live socket. One message is under way at most: behind it goes a ping, and only its pong, which says that
 * the client has read so far, lets the next message go. So a slow reader gets the newest state and never a queue, and
 * nothing gathers in the buffers between the two, which nobody could take back.
 *
 *   idle ── send ──► under way ── pong ──► idle, or what is owed goes
 *                        └── something new ──► owed (the newest is made when it goes)
 */
import type { WebSocket } from "uWebSockets.js";
import { etagOf } from "../read-model/polls/etag.ts";
import { LIVE_LIMITS } from "./limits.ts";

/** What the server keeps with a socket; it copies the properties of the object that it is given. */
export interface SocketData {
  readonly live: LiveSocket;
}

export interface LiveSocketFacts {
  readonly stationId: number;
  readonly userId: number;
  readonly sessionId: number;
  /** SHA-256 of the session's token: by this it is looked up whether the session still is there. */
  readonly sessionDigest: string;
  readonly requestId: string;
}

export class LiveSocket {
  readonly facts: LiveSocketFacts;
  readonly openedAtMs: number = Date.now();
  /** From this moment on what was sent is no longer so, although nothing has changed. */
  validUntilMs = 0;
  /** Messages sent so far. */
  sentCount = 0;
  /** The last message said that the gateway has lost its feed. */
  isToldStale = false;
  /** Undefined before it is open and once it is closed. */
  #socket: WebSocket<SocketData> | undefined;
  #sent = "";
  #isUnderWay = false;
  #sentAtMs = 0;
  #isOwed = false;

  constructor(facts: LiveSocketFacts) {
    this.facts = facts;
  }

  open(socket: WebSocket<SocketData>): void {
    this.#socket = socket;
  }

  closed(): void {
    this.#socket = undefined;
  }

  /** Whether a message may go now; when not, `ponged` says when the newest one is to be made. */
  mayKnow(): boolean {
    this.#isOwed = this.#isUnderWay;
    return !this.#isUnderWay;
  }

  /** Sends unless the client knows it already: `identity` is what the message says, apart from the time. */
  send(message: string, identity: string, isStale: boolean): void {
    const digest = etagOf(identity);
    if (this.#socket === undefined || digest === this.#sent) return;
    this.#sent = digest;
    this.isToldStale = isStale;
    this.sentCount += 1;
    this.#isUnderWay = true;
    this.#sentAtMs = Date.now();
    this.#socket.cork(() => {
      this.#socket?.send(message);
      this.#socket?.ping(String(this.sentCount));
    });
  }

  /** The client has read as far as a ping. Returns whether it is owed something newer. The server pings by itself, too. */
  ponged(payload: string): boolean {
    if (payload !== String(this.sentCount)) return false;
    this.#isUnderWay = false;
    const isOwed = this.#isOwed;
    this.#isOwed = false;
    return isOwed;
  }

  /** Whether the client has not answered the ping behind the last message for too long. */
  isUnread(nowMs: number): boolean {
    return this.#isUnderWay && nowMs - this.#sentAtMs >= LIVE_LIMITS.pongMs;
  }

  end(code: number, reason: string): void {
    this.#socket?.end(code, reason);
  }
}
