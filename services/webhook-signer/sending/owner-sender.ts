/**
 * Sends what is due for one owner, while this process holds the owner's lease:
 *
 *   look which endpoints have something due ──► claim a little ahead ──► queues ──► in flight ──► outcomes, in batches
 *        ▲                                                                │
 *        └──────────────── a queue runs low, something new, time ◄────────┘
 */
import { randomUUID } from "node:crypto";
import type { Database } from "../../db/pool.ts";
import type { Log } from "../../runtime/log.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { type Claimant, claimDue, freeUnknownClaims, giveBack, listDueEndpoints } from "../sql/claims.ts";
import { type AttemptDeps, outcomeOf, sendOnce } from "./attempt.ts";
import { type Claimed, EndpointWork } from "./endpoint-work.ts";
import type { OutcomeWriter } from "./outcome-writer.ts";
import type { Slots } from "./slots.ts";

export interface OwnerSenderDeps extends AttemptDeps {
  readonly database: Database;
  readonly log: Log;
  readonly signerId: string;
  /** Places of this process, shared by all owners. */
  readonly slots: Slots;
  /** Writes outcomes, those of all owners together. */
  readonly writer: OutcomeWriter;
  /** Whether this process may still send: it renews its leases, and stops sending a while before they end. */
  readonly isLeaseValid: () => boolean;
  /** Opens the live secrets of endpoints, newest first; none for one whose secrets do not open. */
  readonly secretsOf: (endpointIds: readonly number[]) => Promise<ReadonlyMap<number, readonly string[]>>;
  readonly onAttempt: (result: { readonly outcome: string; readonly tookMs: number; readonly lagMs: number }) => void;
}

type Wanted = { readonly endpointId: number; readonly count: number }[];

export class OwnerSender {
  readonly organizationId: number;
  readonly #deps: OwnerSenderDeps;
  /** Its own for each time that the owner is held, so that what an earlier holder left behind is told from its own. */
  readonly #claimant: Claimant;
  readonly #endpoints = new Map<number, EndpointWork>();
  readonly #running: Promise<void>;
  readonly #sending = new Map<Promise<void>, number>();
  readonly #pumpAgain = (): void => this.#pump();
  /** Ends what is under way when stopping takes too long. */
  readonly #aborting = new AbortController();
  #stopped = false;
  /** A claim whose answer was lost may have claimed something. */
  #mayHaveLostClaims = false;
  #woken = Promise.withResolvers<void>();
  #idleSinceMs = Date.now();

  constructor(deps: OwnerSenderDeps, organizationId: number) {
    const claimId = randomUUID();
    this.#deps = deps;
    this.organizationId = organizationId;
    this.#claimant = { organizationId, signerId: deps.signerId, claimId };
    this.#running = this.#run();
  }

  /** Something may be due: an event has come, the time of a delivery, or its owner has changed something. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Since when there was nothing to send; undefined while there is. */
  get idleSinceMs(): number | undefined {
    return this.#sending.size > 0 ? undefined : this.#idleSinceMs;
  }

  /** Starts nothing more, gives back what is claimed, and waits for what is under way, which has its own deadline. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#deps.slots.forget(this.#pumpAgain);
    this.wake();
    const timer = setTimeout(() => this.#aborting.abort(), SIGNER_LIMITS.drainTimeoutMs);
    await this.#running;
    await this.#giveBack([...this.#endpoints.values()].flatMap((work) => work.queue.splice(0)));
    await Promise.allSettled(this.#sending.keys());
    clearTimeout(timer);
    await this.#deps.writer.settled();
  }

  async #run(): Promise<void> {
    let isTold = false;
    while (!this.#stopped) {
      let pauseMs: number = SIGNER_LIMITS.longestLookMs;
      this.#woken = Promise.withResolvers<void>();
      try {
        if (!this.#deps.writer.isFull) await this.#look();
        isTold = false;
      } catch (error) {
        this.#mayHaveLostClaims = true;
        pauseMs = SIGNER_LIMITS.lookPauseMs;
        if (!isTold && !this.#stopped) this.#deps.log.warn({ err: error }, "due deliveries cannot be read now");
        isTold = true;
      }
      await this.#wakeOr(pauseMs);
    }
  }

  /** Looks what is due and claims it. */
  async #look(): Promise<void> {
    const { database } = this.#deps;
    if (this.#mayHaveLostClaims) {
      await freeUnknownClaims(database, this.#claimant, this.#knownDeliveries());
      this.#mayHaveLostClaims = false;
    }
    const { organizationId } = this;
    this.#refresh(await listDueEndpoints(database, { organizationId, known: [...this.#endpoints.keys()] }));
    const nowMs = Date.now();
    const wanted = [...this.#endpoints.values()].flatMap((work) => {
      const count = work.wanted(nowMs);
      return count > 0 ? [{ endpointId: work.endpointId, count }] : [];
    });
    if (wanted.length > 0 && !this.#stopped) await this.#claim(wanted);
    this.#pump();
    this.#forgetIdle();
  }

  async #claim(wanted: Wanted): Promise<void> {
    // One after the other: a claim must not be made whose answer nobody waits for.
    const secrets = await this.#deps.secretsOf(wanted.map((one) => one.endpointId));
    const askedAtMs = performance.now();
    const rows = await claimDue(this.#deps.database, { ...this.#claimant, claimMs: SIGNER_LIMITS.claimMs, wanted });
    // By the clock of PostgreSQL, and counted from before it was asked: a wrong clock here sends no offer too late.
    const claimed = rows.map((row) => ({
      ...row,
      claimId: this.#claimant.claimId,
      lapsesAtMs: row.lapses_in_ms === null ? null : askedAtMs + row.lapses_in_ms,
    }));
    for (const { endpointId, count } of wanted) {
      const own = claimed.filter((row) => row.endpoint_id === endpointId);
      this.#endpoints.get(endpointId)?.claimed(own, { wanted: count, secrets: secrets.get(endpointId) ?? [] });
    }
  }

  #knownDeliveries(): readonly number[] {
    const queued = [...this.#endpoints.values()].flatMap((work) => work.queue.map((row) => row.delivery_id));
    return [...queued, ...this.#sending.values(), ...this.#deps.writer.unwritten()];
  }

  #refresh(rows: Awaited<ReturnType<typeof listDueEndpoints>>): void {
    const found = new Set(rows.map((row) => row.endpoint_id));
    for (const row of rows) {
      const known = this.#endpoints.get(row.endpoint_id);
      if (known === undefined) this.#endpoints.set(row.endpoint_id, new EndpointWork(row));
      else known.refresh(row);
    }
    for (const [endpointId, work] of this.#endpoints) {
      if (!found.has(endpointId)) work.withdraw();
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
    // Who has started goes to the end and is visited again there, so that this ends when nobody may start.
    for (const work of this.#endpoints.values()) {
      if (this.#stopped || !this.#deps.isLeaseValid()) break;
      this.#start(work);
    }
    const nowMs = Date.now();
    for (const work of this.#endpoints.values()) {
      if (work.mustGiveBack(nowMs)) void this.#giveBack(work.queue.splice(0));
    }
  }

  #start(work: EndpointWork): void {
    if (!work.mayStart(Date.now())) return;
    const { inFlightPerOwner, keptForHealthyOfOwner } = SIGNER_LIMITS;
    const places = work.isHealthy ? inFlightPerOwner : inFlightPerOwner - keptForHealthyOfOwner;
    if (this.#sending.size >= places || !this.#deps.slots.take(work.isHealthy, this.#pumpAgain)) return;
    const claimed = work.start();
    // It goes to the end, so that whoever waits for one of the owner's places comes first the next time.
    this.#endpoints.delete(work.endpointId);
    this.#endpoints.set(work.endpointId, work);
    const sending = this.#send(work, claimed).finally(() => {
      this.#sending.delete(sending);
      this.#idleSinceMs = Date.now();
      this.#deps.slots.give();
      this.#pump();
      if (work.isLow) this.wake();
    });
    this.#sending.set(sending, claimed.delivery_id);
  }

  async #send(work: EndpointWork, claimed: Claimed): Promise<void> {
    const startedAt = new Date();
    const startedAtMs = performance.now();
    if (claimed.lapsesAtMs !== null && claimed.lapsesAtMs <= startedAtMs) {
      // It ends with the next claim, which sees that it has expired.
      work.abandoned();
      await this.#giveBack([claimed]);
      return;
    }
    const { signal } = this.#aborting;
    const { url, mode, secrets } = work;
    const result = await sendOnce(this.#deps, { url, mode, secrets }, { body: claimed.body, signal });
    if (result === undefined) {
      // Nobody knows what the target did, so it is sent again by whoever holds the owner next.
      work.abandoned();
      return;
    }
    const tookMs = performance.now() - startedAtMs;
    work.ended({ succeeded: result.error === null, status: result.status, tookMs }, Date.now());
    const outcome = outcomeOf(claimed, { result, startedAt, random: this.#deps.random() });
    this.#deps.writer.add(outcome, work);
    const lagMs = Math.max(0, startedAt.getTime() - claimed.was_due_at.getTime());
    this.#deps.onAttempt({ outcome: result.error ?? outcome.status, tookMs, lagMs });
  }

  /** Never rejects: what could not be given back is freed later. */
  async #giveBack(claimed: readonly Claimed[]): Promise<void> {
    const deliveryIds = claimed.map((row) => row.delivery_id);
    const { database, log } = this.#deps;
    await giveBack(database, { claimId: this.#claimant.claimId, deliveryIds }).catch((error: unknown) => {
      this.#mayHaveLostClaims = true;
      log.warn({ err: error, deliveries: deliveryIds.length }, "claimed deliveries could not be given back");
    });
  }

  async #wakeOr(pauseMs: number): Promise<void> {
    const timer = setTimeout(this.#woken.resolve, pauseMs);
    await this.#woken.promise;
    clearTimeout(timer);
  }
}
