/** A process and the majority of the NATS cluster: it waits for one at its start, and leaves a server that reaches none. */
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import { errors, type NatsConnection, type Server } from "nats";
import { every } from "../runtime/every.ts";
import type { LineLog } from "../runtime/log.ts";
import { within } from "../runtime/repeat.ts";
import { errorCode, UserError } from "../runtime/user-error.ts";
import { beatHeaders, beatSubject, bucketBeats } from "./beats.ts";
import { BUS_LIMITS } from "./limits.ts";
import { busThatStoresNothing, busWithoutJetStream, isSingle, unreachableBus } from "./nats-server.ts";
import { isNoResponders } from "./refusals.ts";
import { BUCKETS } from "./streams.ts";

const CHECKS_OF_QUESTION = BUS_LIMITS.quorumAskMs / BUS_LIMITS.quorumCheckMs;
/** JetStream is not available, because its cluster has no leader. */
const NOT_AVAILABLE = 10_008;

interface ReachOptions {
  readonly log: LineLog;
  /** How long to wait for a quorum; undefined for as long as it takes. */
  readonly withinMs: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly choice: ServerChoice;
}

/**
 * Waits until JetStream answers. A server that reaches no majority of its cluster does not answer, or answers that JetStream
 * is not available. Another server may reach one, so the process goes to the next one. When none does, that usually ends
 * without a person, so the process waits and logs why. A single server whose disk was full does not answer either. Throws
 * UserError `nats_without_jetstream`, `nats_denied`, `nats_no_quorum`, `nats_stores_nothing`, `nats_unreachable` or
 * `start_stopped`.
 */
export async function reachJetStream(nc: NatsConnection, options: ReachOptions): Promise<void> {
  const { log, withinMs, signal, choice } = options;
  const startedAtMs = performance.now();
  let serverAnsweredAtMs = startedAtMs;
  /** Questions in a row to the same server without an answer of JetStream. */
  let asked = 0;
  const wait = new QuorumWait(log);
  for (;;) {
    try {
      await jetstreamManager(nc, { timeout: BUS_LIMITS.quorumAnswerMs });
      choice.found();
      return wait.end(nc);
    } catch (cause) {
      const server = nc.getServer();
      // The client does not export this class.
      if (cause instanceof Error && cause.name === "JetStreamNotEnabled") throw busWithoutJetStream(server, cause);
      if (!isSilence(cause)) throw cause;
      const isAnswered = await answers(nc);
      const nowMs = performance.now();
      const isOver = withinMs !== undefined && nowMs - startedAtMs > withinMs;
      if (isAnswered) {
        serverAnsweredAtMs = nowMs;
        if (isOver) throw busThatStoresNothing(nc, cause);
        asked += 1;
        // One answer may be late, because this process or JetStream is busy.
        if (asked >= BUS_LIMITS.quorumQuestions) {
          const hasOthers = !isSingle(nc) && nc.getServers().length > 1;
          wait.go(nc, hasOthers ? "tries the other servers of NATS_URL" : "waits");
          if (hasOthers && choice.leave(nc)) asked = 0;
        }
      } else {
        // The search for a majority dials each address of each server, so only `withinMs` ends it.
        const isSilent = !choice.isSearching() && nowMs - serverAnsweredAtMs > BUS_LIMITS.firstConnectMs;
        if (isOver || isSilent) throw unreachableBus([server], cause);
      }
    }
    await delay(BUS_LIMITS.ensurePauseMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
    if (signal?.aborted === true) throw new UserError("The start was stopped.", { code: "start_stopped" });
  }
}

/** Logs that a process waits for a quorum: at the beginning, then each minute, and once at the end. */
export class QuorumWait {
  readonly #log: LineLog;
  #sinceMs: number | undefined;
  #loggedAtMs = 0;

  constructor(log: LineLog) {
    this.#log = log;
  }

  /** `meanwhile` completes "This process …, and goes on by itself." */
  go(nc: NatsConnection, meanwhile = "waits"): void {
    const nowMs = performance.now();
    const isFirst = this.#sinceMs === undefined;
    this.#sinceMs ??= nowMs;
    if (!isFirst && nowMs - this.#loggedAtMs < BUS_LIMITS.quorumLogMs) return;
    this.#loggedAtMs = nowMs;
    const { message } = busThatStoresNothing(nc, undefined);
    this.#log.warn(
      { waitedMs: Math.round(nowMs - this.#sinceMs) },
      `${message} This process ${meanwhile}, and goes on by itself.`,
    );
  }

  end(nc: NatsConnection): void {
    if (this.#sinceMs === undefined) return;
    const facts = { server: nc.getServer(), waitedMs: Math.round(performance.now() - this.#sinceMs) };
    this.#log.info(facts, "NATS stores messages again");
    this.#sinceMs = undefined;
  }
}

function isSilence(cause: unknown): boolean {
  if (cause instanceof JetStreamApiError) return cause.code === NOT_AVAILABLE;
  return cause instanceof errors.TimeoutError || errorCode(cause) === "bus_down";
}

/** Whether only the bucket is missing while JetStream runs. The relay logs that, and `migrate` creates the bucket again. */
async function lacksOnlyTheBucket(nc: NatsConnection, error: unknown): Promise<boolean> {
  if (!(error instanceof Error && isNoResponders(error.cause))) return false;
  return await nc.request("$JS.API.INFO", "", { timeout: BUS_LIMITS.quorumAnswerMs }).then(
    () => true,
    () => false,
  );
}

/** Whether the bucket's leader has stored a beat. Rejects when it does not answer in time. */
async function storesBeat(nc: NatsConnection, bucket: { readonly name: string }, timeoutMs: number): Promise<boolean> {
  const options = { timeout: timeoutMs, headers: beatHeaders("") };
  const answer = await nc.request(beatSubject(bucketBeats(bucket)), "", options);
  return answer.json<{ readonly seq?: number }>().seq !== undefined;
}

/** Whether the server itself answers. */
async function answers(nc: NatsConnection): Promise<boolean> {
  const flushed = nc.flush().then(
    () => true,
    () => false,
  );
  return (await within(flushed, BUS_LIMITS.quorumAnswerMs)) ?? false;
}

/** Chooses the server of the client's next connection: the server that was named, or any but the one that the process leaves. */
export class ServerChoice {
  #left: string | undefined;
  #next: string | undefined;
  /** How many servers the process has left in a row, because they reached no majority. */
  #leftInRow = 0;
  #mayLeaveAtMs = 0;

  /**
   * Goes from a server that reaches no majority to another one. Returns false when there is no other one, and while the
   * process may not leave yet.
   */
  leave(nc: NatsConnection): boolean {
    const nowMs = performance.now();
    if (nowMs < this.#mayLeaveAtMs || nc.getServers().length < 2) return false;
    const pauseMs = BUS_LIMITS.leaveAgain.firstMs * 2 ** this.#leftInRow;
    this.#mayLeaveAtMs = nowMs + Math.min(pauseMs, BUS_LIMITS.leaveAgain.longestMs);
    this.#leftInRow += 1;
    this.#left = nc.getServer();
    void nc.reconnect();
    return true;
  }

  /** The server of the process reaches a majority. */
  found(): void {
    this.#leftInRow = 0;
    this.#mayLeaveAtMs = 0;
  }

  /** Whether the process searches for a server with a majority. */
  isSearching(): boolean {
    return this.#leftInRow > 0;
  }

  goTo(server: string): void {
    this.#next = server;
  }

  /** The client calls this at each dial, with its own choice first. Null leaves the choice to the client. */
  choose(servers: readonly Server[]): Server | null {
    const next = servers.find(({ listen }) => listen === this.#next);
    this.#next = undefined;
    if (next !== undefined) return next;
    const [first, second] = servers;
    if (this.#left === undefined || first?.listen !== this.#left) return null;
    // Only once: when the other servers are down, a server without a majority is better than none.
    this.#left = undefined;
    return second ?? null;
  }
}

export interface WatchDeps {
  readonly nc: NatsConnection;
  readonly isUp: () => boolean;
  readonly choice: ServerChoice;
  readonly log: LineLog;
}

interface QuorumWatchDeps extends WatchDeps {
  /** Called when a bucket has not answered: it elects, or its leader is cut off from this process's server. */
  readonly onSilence: () => void;
}

/**
 * Leaves a server that no longer reaches a majority of its cluster. Such a server accepts connections and requests as
 * before, but it never answers a request that has to be stored (design §3).
 *
 *   a majority has answered ── 0.75 to 1 s ──► ask one bucket ── 0.5 s ──► ask all ── 0.5 s ──► go to another server
 *            ▲                                     │                        │ ▲                       │
 *            └────── one has answered ◄────────────┴────────────────────────┘ └── each 0.5 s; again to another server each 3 … 30 s
 *
 * It asks with a beat (`beats.ts`): a majority of the bucket's servers must store the beat before it is acknowledged. Each
 * bucket has a separate leader, so the election of one bucket does not look like a cut.
 *
 * A single server gets one question at a time, and less often: there is no other server to go to, and a slow disk must not
 * make the process unready. After its disk was full it stores no beat until it is started again.
 */
export class QuorumWatch {
  readonly #deps: QuorumWatchDeps;
  readonly #stopChecks: () => void;
  #answeredAtMs = performance.now();
  /** Questions in a row without an answer. */
  #asked = 0;
  /** Checks since the last answer: one question is due in `CHECKS_OF_QUESTION` of them. */
  #checks = 0;
  #hasQuorum = true;
  #nextBucket = 0;
  #isAskingSingle = false;
  /** The log has reported that the single server stores nothing. */
  #isSingleReported = false;

  constructor(deps: QuorumWatchDeps) {
    this.#deps = deps;
    this.#stopChecks = every(BUS_LIMITS.quorumCheckMs, () => void this.#check());
  }

  /** The process is connected to a server again, perhaps to another one: the silence of the last one does not count. */
  begin(): void {
    this.#asked = 0;
    this.#checks = 0;
  }

  /** False when all checks got no answer, until a majority answers. */
  hasQuorum(): boolean {
    return this.#hasQuorum;
  }

  stop(): void {
    this.#stopChecks();
  }

  async #check(): Promise<void> {
    const { nc, isUp } = this.#deps;
    // After a stall of this process, answers may have arrived that it has not read yet.
    await nextTurn();
    if (!isUp()) return this.#reset();
    if (isSingle(nc)) return await this.#checkSingle();
    if (performance.now() - this.#answeredAtMs < BUS_LIMITS.quorumFreshMs) return;
    this.#checks += 1;
    if ((this.#checks - 1) % CHECKS_OF_QUESTION !== 0) return;
    if (this.#asked >= BUS_LIMITS.quorumQuestions) {
      this.#hasQuorum = false;
      if (this.#leave()) return;
    }
    this.#asked += 1;
    for (const one of this.#asked === 1 ? [this.#takeBucket()] : BUCKETS) void this.#ask(one);
  }

  #takeBucket(): (typeof BUCKETS)[number] {
    const bucket = BUCKETS[this.#nextBucket] ?? BUCKETS[0];
    this.#nextBucket = (this.#nextBucket + 1) % BUCKETS.length;
    return bucket;
  }

  async #checkSingle(): Promise<void> {
    const { nc, log, isUp } = this.#deps;
    if (this.#isAskingSingle || performance.now() - this.#answeredAtMs < BUS_LIMITS.singleFreshMs) return;
    this.#isAskingSingle = true;
    const isFine = (await this.#singleStores()) || (await this.#singleStores());
    if (!isFine) this.#hasQuorum = false;
    // While a server is frozen, the connection is lost soon, and the log has that. A server that was frozen stores again.
    const isStuck = !isFine && !this.#isSingleReported && (await answers(nc)) && !(await this.#singleStores());
    if (isStuck && isUp()) {
      this.#isSingleReported = true;
      log.warn({}, busThatStoresNothing(nc, undefined).message);
    }
    this.#isAskingSingle = false;
  }

  /** Whether the server stores a beat, or lacks the bucket while it works. */
  async #singleStores(): Promise<boolean> {
    const { nc, log } = this.#deps;
    const isStored = await storesBeat(nc, this.#takeBucket(), BUS_LIMITS.singleAnswerMs).catch((error: unknown) =>
      lacksOnlyTheBucket(nc, error),
    );
    if (!isStored) return false;
    this.#reset();
    if (this.#isSingleReported) log.info({ server: nc.getServer() }, "NATS stores messages again");
    this.#isSingleReported = false;
    this.#hasQuorum = true;
    return true;
  }

  /** For an answer, and for a lost connection. */
  #reset(): void {
    this.#answeredAtMs = performance.now();
    this.begin();
  }

  async #ask(bucket: { readonly name: string }): Promise<void> {
    const { nc, choice, log, onSilence } = this.#deps;
    try {
      if (!(await storesBeat(nc, bucket, BUS_LIMITS.quorumAskMs * 2))) return;
    } catch {
      // The majority has not acknowledged the beat: the next check decides.
      return onSilence();
    }
    this.#reset();
    this.#hasQuorum = true;
    if (choice.isSearching()) log.info({ server: nc.getServer() }, "a majority of the NATS cluster answers again");
    choice.found();
  }

  /**
   * Returns false while the process may not leave yet. It then continues its checks, because the majority may come
   * back.
   */
  #leave(): boolean {
    const { nc, choice, log } = this.#deps;
    const server = nc.getServer();
    const isFirst = !choice.isSearching();
    if (!choice.leave(nc)) return false;
    if (isFirst)
      log.warn({ server }, "this NATS server reaches no majority of its cluster; the process goes to another one");
    this.begin();
    return true;
  }
}
