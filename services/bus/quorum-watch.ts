/**
 * Leaves a server that no longer reaches a majority of its cluster: it takes connections and requests as before, and
 * nothing that has to be stored is ever answered (design §3).
 *
 *   a majority has answered ── 1 s ──► ask one bucket ── 0.5 s ──► ask all ── 0.5 s ──► go to another server
 *            ▲                              │                        │                         │
 *            └────── one has answered ◄─────┴────────────────────────┘ ◄── at most each 3 … 30 s
 *
 * The question is a beat (`beats.ts`): a majority of the bucket's servers must store it before it is acknowledged. Each
 * bucket has a leader of its own, so that the election of one looks like no cut.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { NatsConnection, Server } from "nats";
import { beatHeaders, beatSubject, bucketBeats } from "./beats.ts";
import type { BusLog } from "./connection.ts";
import { BUS_LIMITS } from "./limits.ts";
import { BUCKETS } from "./streams.ts";

/** Which server the client dials next: once another one than the server that was left. */
export class ServerChoice {
  #left: string | undefined;

  leave(server: string): void {
    this.#left = server;
  }

  /** For the client, at each dial: null leaves the choice to it. */
  choose(servers: readonly Server[]): Server | null {
    const [first, second] = servers;
    if (this.#left === undefined || first?.listen !== this.#left) return null;
    // Once: the others may be away, and then a server without a majority is better than none.
    this.#left = undefined;
    return second ?? null;
  }
}

export interface QuorumWatchDeps {
  readonly nc: NatsConnection;
  readonly isUp: () => boolean;
  readonly choice: ServerChoice;
  readonly log: BusLog;
}

export class QuorumWatch {
  readonly #deps: QuorumWatchDeps;
  readonly #timer: NodeJS.Timeout;
  #answeredAtMs = performance.now();
  /** Questions in a row without an answer. */
  #asked = 0;
  #nextBucket = 0;
  /** Servers left in a row; a server that is left may be the best there is. */
  #left = 0;
  #mayLeaveAtMs = 0;

  constructor(deps: QuorumWatchDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => void this.#check(), BUS_LIMITS.quorumAskMs);
    this.#timer.unref();
  }

  /** Whether it looks for a server with a majority. */
  isSearching(): boolean {
    return this.#left > 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    const { nc, isUp } = this.#deps;
    // After a stall of this process its answers have arrived and are not read yet.
    await nextTurn();
    if (!isUp() || nc.info?.cluster === undefined) return this.#reset();
    if (performance.now() - this.#answeredAtMs < BUS_LIMITS.quorumFreshMs) return;
    if (this.#asked >= BUS_LIMITS.quorumQuestions) return this.#leave();
    this.#asked += 1;
    const bucket = BUCKETS[this.#nextBucket % BUCKETS.length];
    this.#nextBucket += 1;
    for (const one of this.#asked === 1 ? [bucket] : BUCKETS) if (one !== undefined) void this.#ask(one);
  }

  /** A lost connection is another matter, and one server alone needs no majority. */
  #reset(): void {
    this.#answeredAtMs = performance.now();
    this.#asked = 0;
  }

  async #ask(bucket: { readonly name: string }): Promise<void> {
    const { nc, log } = this.#deps;
    try {
      const subject = beatSubject(bucketBeats(bucket));
      const options = { timeout: BUS_LIMITS.quorumAskMs * 2, headers: beatHeaders("") };
      const answer = (await nc.request(subject, "", options)).json<{ readonly seq?: number }>();
      if (answer.seq === undefined) return;
    } catch {
      // No answer, or none that a majority stands behind: the next check decides.
      return;
    }
    this.#reset();
    if (this.#left > 0) log.info({ server: nc.getServer() }, "a majority of the NATS cluster answers again");
    this.#left = 0;
    this.#mayLeaveAtMs = 0;
  }

  #leave(): void {
    const { nc, choice, log } = this.#deps;
    const nowMs = performance.now();
    if (nowMs < this.#mayLeaveAtMs || nc.getServers().length < 2) return;
    const server = nc.getServer();
    if (this.#left === 0) {
      log.warn({ server }, "this NATS server reaches no majority of its cluster; the process goes to another one");
    }
    const pauseMs = BUS_LIMITS.leaveAgain.firstMs * 2 ** this.#left;
    this.#mayLeaveAtMs = nowMs + Math.min(pauseMs, BUS_LIMITS.leaveAgain.longestMs);
    this.#left += 1;
    this.#asked = 0;
    choice.leave(server);
    void nc.reconnect();
  }
}
