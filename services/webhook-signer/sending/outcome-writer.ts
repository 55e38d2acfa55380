/**
 * Writes the outcomes of all owners in batches. While one batch is being written, the next one gathers. So batches grow
 * with the load, and the outcome of a single delivery is written at once.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Failures } from "../../bus/outage.ts";
import type { Database } from "../../db/pool.ts";
import type { Log } from "../../runtime/log.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import {
  type Decided,
  type DisabledRow,
  disableEndpoints,
  type EndpointOutcomeRow,
  isWrittenBefore,
  OvertakenError,
  writeDecided,
  writeOutcomes,
} from "../sql/outcomes.ts";
import type { EndpointHealth } from "./endpoint-health.ts";

interface OutcomeWriterDeps {
  readonly database: Database;
  readonly log: Pick<Log, "warn" | "error">;
  /** The id under which this process holds owners. */
  readonly signerId: string;
}

interface Ended {
  readonly decided: Decided;
  /** Of the request that caused the delivery. */
  readonly requestId: string | null;
  /** What the attempt has changed about its endpoint. */
  readonly health: Pick<EndpointHealth, "takeOutcome">;
  /** Called once the outcome is written or abandoned. */
  readonly onWritten: () => void;
}

export class OutcomeWriter {
  readonly #deps: OutcomeWriterDeps;
  #gathering: Ended[] = [];
  #isWriting = false;
  readonly #waitingForRoom = new Set<() => void>();
  /** Resolves when the batch that gathers now is written; the promise before it, when the batch under way is. */
  #gathered = Promise.withResolvers<void>();

  readonly #failures: Failures;

  constructor(deps: OutcomeWriterDeps) {
    this.#deps = deps;
    this.#failures = new Failures((...line) => deps.log.warn(...line), "outcomes of deliveries could not be written");
  }

  add(ended: Ended): void {
    this.#gathering.push(ended);
    if (!this.#isWriting) void this.#write();
  }

  /**
   * Whether so few outcomes wait for PostgreSQL that more may be sent. If not, `onRoom` is called once when there is
   * room.
   */
  hasRoom(onRoom: () => void): boolean {
    if (this.#gathering.length < SIGNER_LIMITS.unwrittenOutcomes) return true;
    this.#waitingForRoom.add(onRoom);
    return false;
  }

  forget(onRoom: () => void): void {
    this.#waitingForRoom.delete(onRoom);
  }

  /** Resolves when everything added so far is written or abandoned. */
  async settled(): Promise<void> {
    const batches = Math.max(1, Math.ceil(this.#gathering.length / SIGNER_LIMITS.outcomesPerWrite));
    for (let batch = 0; batch < batches && this.#isWriting; batch += 1) await this.#gathered.promise;
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    this.#isWriting = true;
    // What has ended in the same turn of the event loop goes together.
    await Promise.resolve();
    for (;;) {
      const startedAtMs = performance.now();
      const batch = this.#gathering.splice(0, SIGNER_LIMITS.outcomesPerWrite);
      const gathered = this.#gathered;
      this.#gathered = Promise.withResolvers<void>();
      const endpoints = [...new Set(batch.map(({ health }) => health))].flatMap(
        (health) => health.takeOutcome(performance.now()) ?? [],
      );
      await this.#writeBatch(batch, endpoints);
      gathered.resolve();
      // Each is called once. A caller that finds no room adds itself again, so a loop over the set itself would have no
      // end.
      const waiting = [...this.#waitingForRoom];
      this.#waitingForRoom.clear();
      for (const onRoom of waiting) onRoom();
      if (this.#gathering.length === 0) break;
      const restMs = startedAtMs + SIGNER_LIMITS.shortestWriteTurnMs - performance.now();
      if (restMs > 0 && this.#gathering.length < SIGNER_LIMITS.outcomesPerWrite) await delay(restMs);
    }
    this.#isWriting = false;
    // No outcome was added since, so callers that wait have nothing to wait for.
    this.#gathered.resolve();
    this.#gathered = Promise.withResolvers<void>();
  }

  /** A delivery whose outcome cannot be written while PostgreSQL is away is sent again: at least once, never lost. */
  async #writeBatch(batch: readonly Ended[], endpoints: readonly EndpointOutcomeRow[]): Promise<void> {
    const { log } = this.#deps;
    for (let attempt = 1; ; attempt += 1) {
      try {
        for (const { endpoint_id: endpointId, disabled_reason: reason } of await this.#store(batch, endpoints)) {
          log.warn({ endpointId, reason }, "a webhook endpoint is disabled");
        }
        break;
      } catch (error) {
        // A batch is written as a whole or not at all, and only an earlier try of this batch has its keys.
        if (attempt > 1 && isWrittenBefore(error)) break;
        if (isRefusedData(error)) return await this.#divide(batch, endpoints, error);
        if (attempt >= SIGNER_LIMITS.writeAttempts) {
          this.#failures.failed(error, { outcomes: batch.length });
          break;
        }
        await delay(SIGNER_LIMITS.writePauseMs * attempt);
      }
    }
    for (const { onWritten } of batch) onWritten();
  }

  /** Writes smaller parts, because one row cannot be stored. The other rows must not wait for it, nor be sent again. */
  async #divide(batch: readonly Ended[], endpoints: readonly EndpointOutcomeRow[], error: unknown): Promise<void> {
    if (batch.length > 0 && endpoints.length > 0) {
      // Endpoints and outcomes can be stored without each other.
      await this.#writeBatch([], endpoints);
      await this.#writeBatch(batch, []);
    } else if (batch.length > 1) {
      for (const half of halves(batch)) await this.#writeBatch(half, []);
    } else if (endpoints.length > 1) {
      for (const half of halves(endpoints)) await this.#writeBatch([], half);
    } else {
      // The delivery stays in hand. Else this process would send it again and again while it holds the owner.
      const [ended] = batch;
      const what = { deliveryId: ended?.decided.outcome.delivery_id, endpointId: endpoints[0]?.endpoint_id };
      const requestId = ended?.requestId ?? undefined;
      this.#deps.log.error({ err: error, ...what, requestId }, "an outcome cannot be stored");
    }
  }

  /**
   * Stores a batch in one transaction. What the machine decided when the attempts ended is stored if no delivery has
   * changed since. Otherwise the machine decides again under the locks of the deliveries. It also decides again when an
   * endpoint is to be disabled, because that ends the endpoint's deliveries.
   */
  async #store(batch: readonly Ended[], endpoints: readonly EndpointOutcomeRow[]): Promise<readonly DisabledRow[]> {
    const { database, signerId } = this.#deps;
    const decided = batch.map((ended) => ended.decided);
    const disabling = endpoints.flatMap(({ endpoint_id, generation, disabled_reason }) =>
      disabled_reason === null ? [] : [{ endpoint_id, generation, disabled_reason }],
    );
    try {
      if (disabling.length === 0) {
        await database.begin((sql) => writeDecided(sql, { decided, endpoints, signerId }));
        return [];
      }
    } catch (error) {
      if (!(error instanceof OvertakenError)) throw error;
    }
    return await database.begin(async (sql) => {
      // First, because it locks the endpoints. Outcomes of attempts that are still under way then are written all the
      // same.
      const disabled = await disableEndpoints(sql, disabling, signerId);
      await writeOutcomes(sql, { outcomes: decided.map(({ outcome }) => outcome), endpoints, signerId });
      return disabled;
    });
  }
}

function halves<T>(all: readonly T[]): readonly [readonly T[], readonly T[]] {
  const middle = Math.ceil(all.length / 2);
  return [all.slice(0, middle), all.slice(middle)];
}

/** PostgreSQL answered that a value is not one that it can store (SQLSTATE classes 22 and 23): trying again changes nothing. */
function isRefusedData(error: unknown): boolean {
  return error instanceof Error && "code" in error && /^2[23]\w{3}$/.test(String(error.code));
}
