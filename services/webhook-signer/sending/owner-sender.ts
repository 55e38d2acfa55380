/**
 * Sends what is due for one owner, while this process holds the owner's lease:
 *
 *   poll which endpoints have something due ──► read a little ahead ──► queues ──► in flight ──► outcomes, in batches
 *        ▲                                                                │
 *        └──────────────── a queue runs low, something new, time ◄────────┘
 *
 * No other process sends for the owner, so what is in hand is in memory alone: from when a delivery is read until its outcome
 * is written it is left out of what is read. What is not sent is released by forgetting it.
 */
import type { Database } from "../../db/pool.ts";
import type { Log } from "../../runtime/log.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { deliveryStep } from "../sql/deliveries.ts";
import { decide } from "../sql/outcomes.ts";
import { lapseExpired, listDue, listDueEndpoints } from "../sql/owners.ts";
import { type AttemptDeps, attemptIdAt, outcomeOf, sendOnce } from "./attempt.ts";
import { EndpointWork, type InHandCount, type Waiting } from "./endpoint-work.ts";
import type { OutcomeWriter } from "./outcome-writer.ts";
import { type Pace, Slots } from "./slots.ts";

export interface OwnerSenderDeps extends AttemptDeps {
  readonly database: Database;
  readonly log: Log;
  /** Places of this process, shared by all owners. */
  readonly slots: Slots;
  /** What all owners have in hand together. */
  readonly inHand: InHandCount;
  /** Writes outcomes, those of all owners together. */
  readonly writer: OutcomeWriter;
  /** Whether this process may still send: it renews its leases, and stops sending a while before they end. */
  readonly isLeaseValid: () => boolean;
  /** Whether sending waits: nothing is read or begun then, and what is under way ends as usual. */
  readonly isPaused: () => boolean;
  /** Opens the live secrets of endpoints, newest first; none for one whose secrets do not open. */
  readonly secretsOf: (endpointIds: readonly number[]) => Promise<ReadonlyMap<number, readonly string[]>>;
  readonly onAttempt: (result: { readonly outcome: string; readonly tookMs: number; readonly lagMs: number }) => void;
}

type Wanted = { readonly endpointId: number; readonly count: number }[];

export class OwnerSender {
  readonly organizationId: number;
  readonly #deps: OwnerSenderDeps;
  readonly #endpoints = new Map<number, EndpointWork>();
  readonly #running: Promise<void>;
  readonly #places = new Slots({
    count: SIGNER_LIMITS.inFlightPerOwner,
    keptForPrompt: SIGNER_LIMITS.keptForPromptOfOwner,
    keptForUntried: SIGNER_LIMITS.keptForUntriedOfOwner,
  });
  /** When PostgreSQL was asked for what is known of the endpoints, and of their secrets; and who is just asking again. */
  #endpointsAtMs = Number.NEGATIVE_INFINITY;
  #secretsAtMs = Number.NEGATIVE_INFINITY;
  #learning: Promise<void> | undefined;
  /** Attempts under way; each end wakes those that wait for it. */
  #sending = 0;
  #attemptEnded = Promise.withResolvers<void>();
  readonly #pumpAgain = (): void => this.#pump();
  /** Ends what is under way when there is no time left for it. */
  readonly #aborting = new AbortController();
  #stopped = false;
  /** Another process may send for the owner already. */
  #isLost = false;
  #woken = Promise.withResolvers<void>();
  /** Undefined until its first poll: an owner that was just taken has something to send. */
  #idleSinceMs: number | undefined;

  constructor(deps: OwnerSenderDeps, organizationId: number) {
    this.#deps = deps;
    this.organizationId = organizationId;
    this.#running = this.#run();
  }

  /** Something may be due: an event has come, the time of a delivery, or its owner has changed something. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Since when there was nothing to send; undefined while there is, be it that it waits for a place. */
  get idleSinceMs(): number | undefined {
    if (this.#sending > 0) return undefined;
    for (const work of this.#endpoints.values()) if (work.hasWaiting) return undefined;
    return this.#idleSinceMs;
  }

  /** The lease is another's: what has not left yet, as while its connection is opened, does not leave here any more. */
  lose(): void {
    this.#isLost = true;
  }

  /** Starts nothing more, and waits for what is under way, which has its own deadline, and for its outcomes. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#deps.slots.forget(this.#pumpAgain);
    this.#deps.writer.forget(this.#pumpAgain);
    this.wake();
    await this.#running;
    while (this.#sending > 0) await this.#attemptEnded.promise;
    await this.#deps.writer.settled();
    for (const work of this.#endpoints.values()) work.releaseAll();
  }

  /** The process ends: what is under way is not waited for any more, and is sent again by the next holder of the owner. */
  cutOff(): void {
    this.#aborting.abort();
  }

  async #run(): Promise<void> {
    let hasWarned = false;
    while (!this.#stopped) {
      let pauseMs: number = SIGNER_LIMITS.longestPauseMs;
      this.#woken = Promise.withResolvers<void>();
      try {
        if (this.#deps.isPaused()) pauseMs = SIGNER_LIMITS.pausedMs;
        else await this.#poll();
        hasWarned = false;
      } catch (error) {
        pauseMs = SIGNER_LIMITS.lookPauseMs;
        if (!hasWarned && !this.#stopped) this.#deps.log.warn({ err: error }, "due deliveries cannot be read now");
        hasWarned = true;
      }
      await this.#wakeOr(pauseMs);
    }
  }

  /** Looks what is due and reads it. */
  async #poll(): Promise<void> {
    const askedAtMs = performance.now();
    await this.#readEndpoints(askedAtMs);
    const nowMs = this.#deps.clock.nowMs();
    const wanted = [...this.#endpoints.values()].flatMap((work) => {
      const count = work.wanted(nowMs);
      return count > 0 ? [{ endpointId: work.endpointId, count }] : [];
    });
    if (this.#stopped) return;
    // One after the other, so that a failure of one leaves nothing of the other to come later.
    await this.#readSecrets(askedAtMs);
    if (wanted.length > 0) await this.#read(wanted);
    this.#pump();
    this.#idleSinceMs ??= Date.now();
    this.#forgetIdle();
  }

  /** What is known must not be older than `knowledgeMs` when an attempt begins; many ask once together. */
  #learn(): Promise<void> {
    const learn = async (askedAtMs: number): Promise<void> => {
      await this.#readEndpoints(askedAtMs);
      await this.#readSecrets(askedAtMs);
    };
    this.#learning ??= learn(performance.now()).finally(() => {
      this.#learning = undefined;
    });
    return this.#learning;
  }

  async #readEndpoints(askedAtMs: number): Promise<void> {
    const { organizationId } = this;
    const known = [...this.#endpoints.keys()];
    const rows = await listDueEndpoints(this.#deps.database, { organizationId, known });
    if (askedAtMs < this.#endpointsAtMs) return;
    this.#endpointsAtMs = askedAtMs;
    this.#refresh(rows);
  }

  /** Of everything that may be sent before the next poll, so that a rotation counts at once. */
  async #readSecrets(askedAtMs: number): Promise<void> {
    const secrets = await this.#deps.secretsOf([...this.#endpoints.keys()]);
    if (askedAtMs < this.#secretsAtMs) return;
    this.#secretsAtMs = askedAtMs;
    for (const [endpointId, work] of this.#endpoints) work.signWith(secrets.get(endpointId) ?? []);
  }

  async #read(wanted: Wanted): Promise<void> {
    const { database } = this.#deps;
    const inHand = wanted.flatMap(({ endpointId }) => [...(this.#endpoints.get(endpointId)?.inHand ?? [])]);
    const askedAtMs = { steady: performance.now(), wall: Date.now() };
    const rows = await listDue(database, { wanted, inHand });
    const byEndpoint = new Map<number, Waiting[]>();
    const lapsed: number[] = [];
    for (const row of rows) {
      if (row.lapses_in_ms !== null && row.lapses_in_ms <= 0) {
        lapsed.push(row.delivery_id);
        continue;
      }
      // By the clock of PostgreSQL, and counted from before it was asked: a wrong clock here sends no offer too late.
      const { lapses_in_ms: inMs } = row;
      const waiting = {
        ...row,
        lapsesAtMs: inMs === null ? null : askedAtMs.steady + inMs,
        lapsesAtWallMs: inMs === null ? null : askedAtMs.wall + inMs,
      };
      const others = byEndpoint.get(row.endpoint_id);
      if (others === undefined) byEndpoint.set(row.endpoint_id, [waiting]);
      else others.push(waiting);
    }
    for (const { endpointId, count } of wanted) {
      const own = byEndpoint.get(endpointId) ?? [];
      this.#endpoints.get(endpointId)?.filled(own, count);
    }
    if (lapsed.length === 0) return;
    await lapseExpired(database, lapsed);
    this.wake();
  }

  #refresh(rows: Awaited<ReturnType<typeof listDueEndpoints>>): void {
    const found = new Set(rows.map((row) => row.endpoint_id));
    for (const row of rows) {
      const known = this.#endpoints.get(row.endpoint_id);
      if (known === undefined) this.#endpoints.set(row.endpoint_id, new EndpointWork(row, this.#deps.inHand));
      else known.refresh(row);
    }
    const nowMs = this.#deps.clock.nowMs();
    for (const [endpointId, work] of this.#endpoints) {
      if (!found.has(endpointId)) work.withdraw();
      work.releaseUnsendable(nowMs);
    }
  }

  #forgetIdle(): void {
    const nowMs = Date.now();
    for (const [endpointId, work] of this.#endpoints) {
      if (work.isIdle(nowMs)) this.#endpoints.delete(endpointId);
    }
  }

  /** Starts what may be started, one of each endpoint in turn, so that a busy one does not take the owner's places. */
  #pump(): void {
    const { isPaused, isLeaseValid, writer } = this.#deps;
    // An endpoint that starts goes to the end and is visited again there: the loop ends when none may start.
    for (const work of this.#endpoints.values()) {
      if (this.#stopped || isPaused() || !isLeaseValid() || !writer.hasRoom(this.#pumpAgain)) return;
      this.#start(work);
    }
  }

  #start(work: EndpointWork): void {
    if (!work.mayStart(this.#deps.clock.nowMs())) return;
    const { pace } = work.health;
    if (!this.#places.hasRoom(pace) || !this.#deps.slots.take(pace, this.#pumpAgain)) return;
    this.#places.take(pace);
    this.#sending += 1;
    // It goes to the end, so that whoever waits for one of the owner's places comes first the next time.
    this.#endpoints.delete(work.endpointId);
    this.#endpoints.set(work.endpointId, work);
    void this.#send(work, work.start(), pace);
  }

  /** Never rejects. */
  async #send(work: EndpointWork, waiting: Waiting, pace: Pace): Promise<void> {
    try {
      await this.#attempt(work, waiting);
    } finally {
      this.#sending -= 1;
      this.#idleSinceMs = Date.now();
      this.#places.give(pace);
      this.#deps.slots.give(pace);
      this.#pump();
      if (work.isLow) this.wake();
      if (this.#stopped) {
        this.#attemptEnded.resolve();
        this.#attemptEnded = Promise.withResolvers<void>();
      }
    }
  }

  async #attempt(work: EndpointWork, waiting: Waiting): Promise<void> {
    if (!(await this.#mayAttempt(work))) {
      work.abandoned(waiting.delivery_id);
      this.wake();
      return;
    }
    const { clock } = this.#deps;
    const attemptId = attemptIdAt(clock.nowMs());
    const startedAtMs = performance.now();
    if (hasLapsed(waiting)) {
      // The next poll sees that it has expired, and ends it.
      work.abandoned(waiting.delivery_id);
      this.wake();
      return;
    }
    const lagMs = Math.max(0, attemptId / 1_000 - waiting.due_at_ms);
    const message = {
      body: waiting.body,
      signal: this.#aborting.signal,
      endsAtMs: waiting.lapsesAtMs,
      maySend: () => !this.#isLost && this.#deps.isLeaseValid() && !hasLapsed(waiting),
    };
    const result = await sendOnce(this.#deps, work, message);
    if (result === undefined) {
      // The outcome is unknown, so it is sent again by the next holder of the owner; or it did not leave in time:
      // that of an offer ends at the next poll, that of a lease is another's.
      work.abandoned(waiting.delivery_id);
      this.wake();
      return;
    }
    const tookMs = performance.now() - startedAtMs;
    const nowMs = clock.nowMs();
    const succeeded = result.error === null;
    work.ended({ succeeded, status: result.status, tookMs }, nowMs);
    if (!succeeded) work.releaseUnsendable(nowMs);
    const { random, writer, onAttempt } = this.#deps;
    const outcome = outcomeOf(waiting, { attemptId, result, random: random() });
    const decided = decide(outcome, deliveryStep(waiting), nowMs);
    writer.add({ decided, health: work.health, onWritten: () => work.release(waiting.delivery_id) });
    onAttempt({ outcome: result.error ?? "delivered", tookMs, lagMs });
  }

  /** Whether it may be sent to by what is known now; without PostgreSQL it may not. */
  async #mayAttempt(work: EndpointWork): Promise<boolean> {
    const oldestMs = performance.now() - SIGNER_LIMITS.knowledgeMs;
    if (this.#secretsAtMs >= oldestMs && this.#endpointsAtMs >= oldestMs) return true;
    try {
      await this.#learn();
    } catch {
      return false;
    }
    return !work.isWithdrawn && !this.#stopped && this.#deps.isLeaseValid();
  }

  async #wakeOr(pauseMs: number): Promise<void> {
    const timer = setTimeout(this.#woken.resolve, pauseMs);
    await this.#woken.promise;
    clearTimeout(timer);
  }
}

/** By either clock, as with a lease: the one that never jumps stands still while the machine sleeps. */
function hasLapsed({ lapsesAtMs, lapsesAtWallMs }: Waiting): boolean {
  if (lapsesAtMs === null || lapsesAtWallMs === null) return false;
  return performance.now() >= lapsesAtMs || Date.now() >= lapsesAtWallMs;
}
