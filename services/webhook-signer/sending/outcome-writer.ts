/**
 * Writes outcomes in batches: while one batch is being written the next one gathers, so batches grow with the load and a
 * lone delivery waits for nothing.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "../../db/pool.ts";
import type { Log } from "../../runtime/log.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import { type OutcomeRow, writeEndpointOutcomes, writeOutcomes } from "../sql/outcomes.ts";
import type { EndpointWork } from "./endpoint-work.ts";

export interface OutcomeWriterDeps {
  readonly database: Database;
  readonly log: Pick<Log, "warn" | "info">;
  readonly signerId: string;
}

export class OutcomeWriter {
  readonly #deps: OutcomeWriterDeps;
  #outcomes: OutcomeRow[] = [];
  #touched = new Set<EndpointWork>();
  #writing: Promise<void> | undefined;

  constructor(deps: OutcomeWriterDeps) {
    this.#deps = deps;
  }

  add(outcome: OutcomeRow, work: EndpointWork): void {
    this.#outcomes.push(outcome);
    this.#touched.add(work);
    this.#writing ??= this.#write();
  }

  /** So many outcomes wait for PostgreSQL that nothing more should be sent. */
  get isFull(): boolean {
    return this.#outcomes.length >= SIGNER_LIMITS.unwrittenOutcomes;
  }

  /** Resolves when everything added so far is written, or given up. */
  async settled(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #write(): Promise<void> {
    // What has ended in the same turn of the event loop goes together.
    await Promise.resolve();
    while (this.#outcomes.length > 0) {
      const outcomes = this.#outcomes;
      const endpoints = [...this.#touched].flatMap((work) => work.takeOutcome() ?? []);
      this.#outcomes = [];
      this.#touched = new Set();
      await this.#writeBatch(outcomes, endpoints);
    }
    this.#writing = undefined;
  }

  /** What cannot be written in the end is sent again when its claim is over: at least once, never lost. */
  async #writeBatch(
    outcomes: readonly OutcomeRow[],
    endpoints: Parameters<typeof writeEndpointOutcomes>[1],
  ): Promise<void> {
    const { database, log, signerId } = this.#deps;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const disabled = await database.begin(async (sql) => {
          await writeOutcomes(sql, { signerId, outcomes });
          return await writeEndpointOutcomes(sql, endpoints);
        });
        for (const endpointId of disabled) log.warn({ endpointId }, "a webhook endpoint is disabled");
        return;
      } catch (error) {
        if (attempt >= SIGNER_LIMITS.writeAttempts) {
          log.warn({ err: error, outcomes: outcomes.length }, "outcomes of deliveries could not be written");
          return;
        }
        await delay(SIGNER_LIMITS.writePauseMs * attempt);
      }
    }
  }
}
