/**
 * One cashier's live socket. At most one message is under way: the gateway sends a ping after it and waits for the pong, which
 * shows that the client has read the message. So a slow client gets the newest state and never a queue, and no messages
 * gather in network buffers, where the gateway could not replace them.
 *
 *   idle ── send ──► under way ── pong ──► idle, or sends the newest state if it is outdated
 *                        └── change ──► outdated
 */
import type { WebSocket } from "uWebSockets.js";
import { etagOf } from "../read-model/etag.ts";

/** The bounds of the live sockets, each with its reason. */
export const LIVE_LIMITS = {
  /** Sockets of one session: a cashier's screens and forgotten tabs. Only a page that loops opens more. */
  perSession: 8,
  /** Sockets of one gateway: about 10 KB each with the buffers of the kernel and of the server. */
  inAll: 10_000,
  /** How often the gateway checks sessions, freshness and deadlines: clients must see a change within 1.5 seconds. */
  sweepMs: 200,
  /**
   * Silence after which the server ends a socket, in whole seconds. The server pings the client before that, so a client that
   * reads is never silent.
   */
  idleSeconds: 24,
  /**
   * How long a client may take to answer the ping after a message. A faulty client that sends frames without masks never
   * answers: the server accepts its frames, but cannot read their content.
   */
  pongMs: 24_000,
  /**
   * When the gateway has sent a client nothing for this time, it sends that the last state is current. A network that drops
   * packets closes no connection, and the script of a page does not receive pings.
   */
  repeatMs: 3_000,
  /** Clients send no messages. This is enough for a control frame. */
  incomingBytes: 1_024,
  /** Unsent bytes of one socket. A state has a few KB, so more is a mistake of the gateway. */
  backlogBytes: 256 * 1_024,
} as const;

/** The codes of close frames. Codes from 4000 on are for applications (RFC 6455, 7.4.2). */
export const CLOSE_CODES = {
  goingAway: 1001,
  nothingExpected: 1008,
  sessionEnded: 4401,
  stationGone: 4404,
} as const;

/** What the server keeps with a socket. The server copies the properties of the object that it gets. */
export interface SocketData {
  readonly live: LiveSocket;
}

interface LiveSocketFacts {
  readonly stationId: number;
  readonly userId: number;
  readonly sessionId: number;
  /** SHA-256 of the session's token: the key by which the gateway checks that the session still exists. */
  readonly sessionDigest: string;
  readonly requestId: string;
}

export class LiveSocket {
  readonly facts: LiveSocketFacts;
  /** By `performance.now()`, like all times here but the two of the sent state: a change of the system clock must not end a socket. */
  readonly openedAtMs: number = performance.now();
  /** The time of the sent state: after the clock was set back, a state from a later time may be wrong. */
  madeAtMs = 0;
  /** When the sent state becomes wrong because time passes, for example at a deadline. */
  validUntilMs = 0;
  sentCount = 0;
  /** Whether the last message reported that the gateway has lost its feed. */
  isSentStale = false;
  /** Undefined before the socket opens and after it is closed. */
  #socket: WebSocket<SocketData> | undefined;
  #sent = "";
  #isUnderWay = false;
  #sentAtMs = 0;
  #isOutdated = false;

  constructor(facts: LiveSocketFacts) {
    this.facts = facts;
  }

  open(socket: WebSocket<SocketData>): void {
    this.#socket = socket;
  }

  closed(): void {
    this.#socket = undefined;
  }

  /** Whether the caller may send now. If not, the method notes that the client's state is outdated, for `ponged`. */
  maySend(): boolean {
    this.#isOutdated = this.#isUnderWay;
    return !this.#isUnderWay;
  }

  /** Sends the message unless the client has it already. `identity` is the content of the message without the time. */
  send(message: string, identity: string, isStale: boolean): void {
    const digest = etagOf(identity);
    if (this.#socket === undefined || digest === this.#sent) return;
    this.#sent = digest;
    this.isSentStale = isStale;
    this.#write(message);
  }

  /** Whether it is time to send that the last state is still current. */
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

  /** Handles a pong. Returns whether the client needs a newer message. The server also sends pings by itself. */
  ponged(payload: string): boolean {
    if (payload !== String(this.sentCount)) return false;
    this.#isUnderWay = false;
    const isOutdated = this.#isOutdated;
    this.#isOutdated = false;
    return isOutdated;
  }

  /** Whether the client has not answered the ping after the last message in time. */
  isUnread(nowMs: number): boolean {
    return this.#isUnderWay && nowMs - this.#sentAtMs >= LIVE_LIMITS.pongMs;
  }

  end(code: number, reason: string): void {
    this.#socket?.end(code, reason);
  }
}
