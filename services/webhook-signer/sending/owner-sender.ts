/**
 * Sends what is due for one owner, while this process holds the owner's lease:
 *
 *   look which endpoints have something due ──► claim a little ahead ──► queues ──► in flight ──► outcomes, in batches
 *        ▲                                                                │
 *        └──────────────── a queue runs low, something new, time ◄────────┘
 */
import type { Database } from "../../db/pool.ts";
import type { Log } from "../../runtime/log.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { type ClaimedRow, claimDue, giveBack, listDueEndpoints, nextDueInMs } from "../sql/claims.ts";
import { type AttemptDeps, outcomeOf, sendOnce } from "./attempt.ts";
import { EndpointWork } from "./endpoint-work.ts";
import { OutcomeWriter } from "./outcome-writer.ts";
import type { Slots } from "./slots.ts";

export interface OwnerSenderDeps extends AttemptDeps {
  readonly database: Database;
  readonly log: Log;
  readonly signerId: string;
  /** Places of this process, shared by all owners. */
  readonly slots: Slots;
  /** Opens the live secrets of endpoints, newest first; none for one whose secrets do not open. */
  readonly secretsOf: (endpointIds: readonly number[]) => Promise<ReadonlyMap<number, readonly string[]>>;
  readonly onAttempt: (result: { readonly outcome: string; readonly tookMs: number; readonly lagMs: number }) => void;
}

export class OwnerSender {
  readonly organizationId: number;
  readonly #deps: OwnerSenderDeps;
  readonly #endpoints = new Map<number, EndpointWork>();
  readonly #writer: OutcomeWriter;
  readonly #running: Promise<void>;
  readonly #sending = new Set<Promise<void>>();
  readonly #pumpAgain = (): void => this.#pump();
  /** Ends what is under way when stopping takes too long. */
  readonly #aborting = new AbortController();
  #stopped = false;
  #woken = Promise.withResolvers<void>();
  #idleSinceMs = Date.now();

  constructor(deps: OwnerSenderDeps, organizationId: number) {
    this.#deps = deps;
    this.organizationId = organizationId;
    this.#writer = new OutcomeWriter(deps);
    this.#running = this.#run();
  }

  /** Something may be due. */
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
    await this.#running;
    const timer = setTimeout(() => this.#aborting.abort(), SIGNER_LIMITS.drainTimeoutMs);
    await Promise.allSettled(this.#sending);
    clearTimeout(timer);
    await this.#writer.settled();
    await this.#giveBack([...this.#endpoints.values()].flatMap((work) => work.queue.splice(0)));
  }

  async #run(): Promise<void> {
    let isTold = false;
    while (!this.#stopped) {
      let pauseMs: number = SIGNER_LIMITS.lookPauseMs;
      this.#woken = Promise.withResolvers<void>();
      try {
        const claimed = this.#writer.isFull ? 0 : await this.#claim();
        pauseMs = claimed > 0 ? SIGNER_LIMITS.longestLookMs : await this.#pauseMs();
        isTold = false;
      } catch (error) {
        if (!isTold && !this.#stopped) this.#deps.log.warn({ err: error }, "due deliveries cannot be read now");
        isTold = true;
      }
      await this.#wakeOr(pauseMs);
    }
  }

  async #claim(): Promise<number> {
    const { database, signerId } = this.#deps;
    const due = await listDueEndpoints(database, this.organizationId);
    this.#refresh(due);
    const nowMs = Date.now();
    const wanted = due.flatMap(({ endpoint_id: endpointId }) => {
      const count = this.#endpoints.get(endpointId)?.wanted(nowMs) ?? 0;
      return count > 0 ? [{ endpointId, count }] : [];
    });
    if (wanted.length === 0 || this.#stopped) return 0;
    const claims = { organizationId: this.organizationId, signerId, claimMs: SIGNER_LIMITS.claimMs, wanted };
    const [secrets, claimed] = await Promise.all([
      this.#deps.secretsOf(wanted.map((one) => one.endpointId)),
      claimDue(database, claims),
    ]);
    for (const [endpointId, live] of secrets) {
      const work = this.#endpoints.get(endpointId);
      if (work !== undefined) work.secrets = live;
    }
    for (const { endpointId, count } of wanted) {
      const rows = claimed.filter((row) => row.endpoint_id === endpointId);
      this.#endpoints.get(endpointId)?.claimed(rows, count);
    }
    this.#pump();
    return claimed.length;
  }

  #refresh(due: Awaited<ReturnType<typeof listDueEndpoints>>): void {
    const isDue = new Set(due.map((row) => row.endpoint_id));
    for (const [endpointId, work] of this.#endpoints) {
      if (work.isIdle && !isDue.has(endpointId)) this.#endpoints.delete(endpointId);
    }
    for (const row of due) {
      const known = this.#endpoints.get(row.endpoint_id);
      if (known === undefined) this.#endpoints.set(row.endpoint_id, new EndpointWork(row));
      else known.refresh(row);
    }
  }

  /** Starts what may be started, one of each endpoint in turn, so that a busy one does not take the owner's places. */
  #pump(): void {
    let hasStarted = true;
    while (hasStarted && !this.#stopped) {
      hasStarted = false;
      for (const work of this.#endpoints.values()) {
        if (this.#sending.size >= SIGNER_LIMITS.inFlightPerOwner) return;
        if (!work.mayStart(Date.now())) continue;
        if (!this.#deps.slots.take(this.#pumpAgain)) return;
        const claimed = work.queue.shift();
        if (claimed === undefined) {
          this.#deps.slots.give();
          continue;
        }
        this.#start(work, claimed);
        hasStarted = true;
      }
    }
    for (const work of this.#endpoints.values()) {
      if (work.mustGiveBack(Date.now())) void this.#giveBack(work.queue.splice(0));
    }
  }

  #start(work: EndpointWork, claimed: ClaimedRow): void {
    work.started();
    const sending = this.#send(work, claimed).finally(() => {
      this.#sending.delete(sending);
      this.#idleSinceMs = Date.now();
      this.#deps.slots.give();
      this.#pump();
      if (work.isLow) this.wake();
    });
    this.#sending.add(sending);
  }

  async #send(work: EndpointWork, claimed: ClaimedRow): Promise<void> {
    const startedAt = new Date();
    if (claimed.lapses_at !== null && claimed.lapses_at <= startedAt) {
      work.abandoned();
      await this.#giveBack([claimed]);
      return;
    }
    const { url, mode, secrets } = work;
    const { signal } = this.#aborting;
    const result = await sendOnce(this.#deps, { url, mode, secrets }, { body: claimed.body, signal }).catch(
      () => undefined,
    );
    if (result === undefined) {
      // The process ends: nobody knows what the target did, so it is sent again when the claim is over.
      work.abandoned();
      return;
    }
    const tookMs = Date.now() - startedAt.getTime();
    work.ended({ succeeded: result.error === null, status: result.status, tookMs }, Date.now());
    const outcome = outcomeOf(claimed, { result, startedAt, random: this.#deps.random() });
    this.#writer.add(outcome, work);
    const lagMs = Math.max(0, startedAt.getTime() - claimed.was_due_at.getTime());
    this.#deps.onAttempt({ outcome: result.error ?? outcome.status, tookMs, lagMs });
  }

  /** Never rejects: what could not be given back is due again when its claim is over. */
  async #giveBack(claimed: readonly ClaimedRow[]): Promise<void> {
    const deliveryIds = claimed.map((row) => row.delivery_id);
    const { database, signerId, log } = this.#deps;
    await giveBack(database, { signerId, deliveryIds }).catch((error: unknown) => {
      log.warn({ err: error, deliveries: deliveryIds.length }, "claimed deliveries could not be given back");
    });
  }

  async #pauseMs(): Promise<number> {
    const dueInMs = await nextDueInMs(this.#deps.database, this.organizationId);
    return Math.min(
      SIGNER_LIMITS.longestLookMs,
      Math.max(SIGNER_LIMITS.lookPauseMs, dueInMs ?? Number.POSITIVE_INFINITY),
    );
  }

  async #wakeOr(pauseMs: number): Promise<void> {
    const timer = setTimeout(this.#woken.resolve, pauseMs);
    await this.#woken.promise;
    clearTimeout(timer);
  }
}
