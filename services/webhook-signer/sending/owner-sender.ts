/**
 * Sends what is due for one owner, while this process holds the owner's lease:
 *
 *   poll which endpoints have something due ──► read a little ahead ──► queues ──► in flight ──► outcomes, in batches
 *        ▲                                                                │
 *        └──────────────── a queue runs low, something new, time ◄────────┘
 *
 * No other process sends for the owner, so only the memory has the deliveries in hand. A delivery is in hand from its read
 * until its outcome is written, and is not read again meanwhile. To release an unsent delivery, the process forgets it.
 */
import { failuresOf } from "../../bus/outage.ts";
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
  /** Slots of this process, shared by all owners. */
  readonly slots: Slots;
  /** What all owners have in hand together. */
  readonly inHand: InHandCount;
  /** Writes outcomes, those of all owners together. */
  readonly writer: OutcomeWriter;
  /** Whether this process may still send: it renews its leases, and stops sending a while before they end. */
  readonly isLeaseValid: () => boolean;
  /** Whether sending is paused. Then nothing is read or begun, and attempts under way end as usual. */
  readonly isPaused: () => boolean;
  /** Decrypts the live secrets of endpoints, newest first; none for an endpoint whose secrets cannot be decrypted. */
  readonly secretsOf: (endpointIds: readonly number[]) => Promise<ReadonlyMap<number, readonly string[]>>;
  readonly onAttempt: (result: { readonly outcome: string; readonly tookMs: number; readonly lagMs: number }) => void;
}

type Wanted = { readonly endpointId: number; readonly count: number }[];

export class OwnerSender {
  readonly organizationId: number;
  readonly #deps: OwnerSenderDeps;
  readonly #endpoints = new Map<number, EndpointWork>();
  readonly #running: Promise<void>;
  readonly #ownerSlots = new Slots({
    count: SIGNER_LIMITS.inFlightPerOwner,
    keptForPrompt: SIGNER_LIMITS.keptForPromptOfOwner,
    keptForUntried: SIGNER_LIMITS.keptForUntriedOfOwner,
  });
  /**
   * When this process sent the queries for the endpoints and secrets that it has now; and the read that is under way.
   */
  #endpointsAtMs = Number.NEGATIVE_INFINITY;
  #secretsAtMs = Number.NEGATIVE_INFINITY;
  #rereading: Promise<void> | undefined;
  /** Attempts under way; each end wakes those that wait for it. */
  #sending = 0;
  #attemptEnded = Promise.withResolvers<void>();
  readonly #pumpAgain = (): void => this.#pump();
  /** Aborts the attempts under way when the process must end. */
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

  /** Something may be due: a new event, a delivery whose time has come, or a change by the owner. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Since when there is nothing to send. Undefined while something is sent or waits for a slot. */
  get idleSinceMs(): number | undefined {
    if (this.#sending > 0) return undefined;
    for (const work of this.#endpoints.values()) if (work.hasWaiting) return undefined;
    return this.#idleSinceMs;
  }

  /** Another process has the lease: this process sends no more, not even an attempt that is still opening its connection. */
  lose(): void {
    this.#isLost = true;
  }

  /** Starts no more attempts. Waits for those under way, which have deadlines, and for their outcomes. */
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

  /** The process ends: it aborts the attempts under way, and the next holder of the owner's lease sends them again. */
  cutOff(): void {
    this.#aborting.abort();
  }

  async #run(): Promise<void> {
    let hasWarned = false;
    const failures = failuresOf(this.#deps.log, "due deliveries cannot be read now");
    while (!this.#stopped) {
      let pauseMs: number = SIGNER_LIMITS.longestPauseMs;
      this.#woken = Promise.withResolvers<void>();
      try {
        if (this.#deps.isPaused()) pauseMs = SIGNER_LIMITS.pausedMs;
        else await this.#poll();
        hasWarned = false;
      } catch (error) {
        pauseMs = SIGNER_LIMITS.pollRetryMs;
        if (!hasWarned && !this.#stopped) failures.failed(error, { organizationId: this.organizationId });
        hasWarned = true;
      }
      await this.#wakeOr(pauseMs);
    }
  }

  /** Polls which deliveries are due, and reads them. */
  async #poll(): Promise<void> {
    const askedAtMs = performance.now();
    await this.#readEndpoints(askedAtMs);
    const nowMs = this.#deps.clock.nowMs();
    const wanted = [...this.#endpoints.values()].flatMap((work) => {
      const count = work.wanted(nowMs);
      return count > 0 ? [{ endpointId: work.endpointId, count }] : [];
    });
    if (this.#stopped) return;
    // One after the other, so that a failure of the first leaves no read of the second under way.
    await this.#readSecrets(askedAtMs);
    if (wanted.length > 0) await this.#read(wanted);
    this.#pump();
    this.#idleSinceMs ??= performance.now();
    this.#forgetIdle();
  }

  /** Reads endpoints and secrets again, so that none is older than `knowledgeMs` when an attempt begins. Callers share one read. */
  #reread(): Promise<void> {
    const reread = async (askedAtMs: number): Promise<void> => {
      await this.#readEndpoints(askedAtMs);
      await this.#readSecrets(askedAtMs);
    };
    this.#rereading ??= reread(performance.now()).finally(() => {
      this.#rereading = undefined;
    });
    return this.#rereading;
  }

  async #readEndpoints(askedAtMs: number): Promise<void> {
    const { organizationId } = this;
    const known = [...this.#endpoints.keys()];
    const rows = await listDueEndpoints(this.#deps.database, { organizationId, known });
    if (askedAtMs < this.#endpointsAtMs) return;
    this.#endpointsAtMs = askedAtMs;
    this.#refresh(rows);
  }

  /** Reads the secrets of all endpoints that may be sent to before the next poll, so that a rotation takes effect at once. */
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
      // PostgreSQL computes the time left, and it counts from before the query. So no offer is late because of a wrong clock here.
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
      this.#endpoints.get(endpointId)?.filled(byEndpoint.get(endpointId) ?? [], count);
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
    const nowMs = performance.now();
    for (const [endpointId, work] of this.#endpoints) {
      if (work.isIdle(nowMs)) this.#endpoints.delete(endpointId);
    }
  }

  /** Starts what may be started, one of each endpoint in turn, so that a busy endpoint does not take all slots of the owner. */
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
    if (!this.#ownerSlots.hasRoom(pace) || !this.#deps.slots.take(pace, this.#pumpAgain)) return;
    this.#ownerSlots.take(pace);
    this.#sending += 1;
    // It goes to the end, so that an endpoint that waits for a slot of the owner comes first the next time.
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
      this.#idleSinceMs = performance.now();
      this.#ownerSlots.release(pace);
      this.#deps.slots.release(pace);
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
      // The next poll finds it expired, and ends it.
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
      requestId: waiting.request_id,
    };
    const result = await sendOnce(this.#deps, work, message);
    if (result === undefined) {
      // Either the outcome is unknown, and the next holder of the owner's lease sends it again. Or it was not sent in time:
      // the next poll ends an expired offer, and after a lost lease another process sends it.
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
    const { delivery_id: deliveryId, request_id: requestId } = waiting;
    writer.add({ decided, health: work.health, requestId, onWritten: () => work.release(deliveryId) });
    onAttempt({ outcome: result.error ?? "delivered", tookMs, lagMs });
  }

  /** Whether the endpoint may be sent to, by endpoints and secrets that are new enough. False when PostgreSQL is away. */
  async #mayAttempt(work: EndpointWork): Promise<boolean> {
    const oldestMs = performance.now() - SIGNER_LIMITS.knowledgeMs;
    if (this.#secretsAtMs >= oldestMs && this.#endpointsAtMs >= oldestMs) return true;
    try {
      await this.#reread();
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

/** By either clock, as with a lease: the steady clock stops while the machine sleeps, and the wall clock may be set back. */
function hasLapsed({ lapsesAtMs, lapsesAtWallMs }: Waiting): boolean {
  if (lapsesAtMs === null || lapsesAtWallMs === null) return false;
  return performance.now() >= lapsesAtMs || Date.now() >= lapsesAtWallMs;
}
