/**
 * One cashier's live socket. One message is under way at most: behind it goes a ping, and only its pong, which says that
 * the client has read so far, lets the next message go. So a slow reader gets the newest state and never a queue, and
 * no messages gather in the buffers between the two, where the gateway could not withdraw them.
 *
 *   idle ── send ──► under way ── pong ──► idle, or what is owed goes
 *                        └── something new ──► owed (the newest is made when it goes)
 */
import type { WebSocket } from "uWebSockets.js";
import { etagOf } from "../read-model/etag.ts";

/** The bounds of the live sockets, each with its reason. */
export const LIVE_LIMITS = {
  /** Sockets of one session: a cashier's screens and the tabs that were forgotten; more is a page that loops. */
  perSession: 8,
  /** Sockets of one gateway: about 10 KB each with the buffers of the kernel and of the server. */
  inAll: 10_000,
  /** How often sessions, freshness and deadlines are checked; a change of each must show within a second and a half. */
  sweepMs: 200,
  /**
   * Silence after which a client counts as gone. It is pinged before, so one that reads is never silent; one that has
   * stopped to read is, because what it does not read it does not answer. Whole seconds; the server knows no others.
   */
  idleSeconds: 24,
  /**
   * How long a client may take to answer the ping behind a message. One that sends frames without masks, which the server
   * does not notice, answers none that can be recognised.
   */
  pongMs: 24_000,
  /**
   * When the gateway has sent a client nothing for this time, it sends that the last state still holds: a network that drops
   * packets closes nothing, and pings do not reach the program of a page.
   */
  repeatMs: 3_000,
  /** A client has nothing to say; this is room for a control frame and the beginning of a mistake. */
  incomingBytes: 1_024,
  /** The newest state is a few KB; a client that has more than this ahead of it has been sent something wrong. */
  backlogBytes: 256 * 1_024,
} as const;

/** Why a socket is ended: the code of the close frame. From 4000 on they are ours (RFC 6455, 7.4.2). */
export const CLOSE_CODES = {
  goingAway: 1001,
  nothingExpected: 1008,
  sessionEnded: 4401,
  stationGone: 4404,
} as const;

/** What the server keeps with a socket; it copies the properties of the object that it is given. */
export interface SocketData {
  readonly live: LiveSocket;
}

export interface LiveSocketFacts {
  readonly stationId: number;
  readonly userId: number;
  readonly sessionId: number;
  /** SHA-256 of the session's token: the key by which the gateway checks that the session still exists. */
  readonly sessionDigest: string;
  readonly requestId: string;
}

export class LiveSocket {
  readonly facts: LiveSocketFacts;
  /** By `performance.now()`, as all its times but `validUntilMs`: a clock that is set must not end a socket. */
  readonly openedAtMs: number = performance.now();
  /** From this moment on what was sent is no longer so, although nothing has changed. */
  validUntilMs = 0;
  /** Messages sent so far. */
  sentCount = 0;
  /** The last message said that the gateway has lost its feed. */
  isSentStale = false;
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
    this.isSentStale = isStale;
    this.#write(message);
  }

  /** Whether it is time to say that the last message, a state, still holds. */
  isQuiet(nowMs: number): boolean {
    const isIdle = this.sentCount > 0 && !this.#isUnderWay && !this.isSentStale;
    return isIdle && nowMs - this.#sentAtMs >= LIVE_LIMITS.repeatMs;
  }

  sendCurrent(message: string): void {
    if (this.#socket !== undefined) this.#write(message);
  }

  #write(message: string): void {
    this.sentCount += 1;
    this.#isUnderWay = true;
    this.#sentAtMs = performance.now();
    this.#socket?.cork(() => {
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
