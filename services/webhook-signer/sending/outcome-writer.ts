/**
 * Writes the outcomes of all owners in batches: while one batch is being written the next one gathers, so batches grow with
 * the load and a lone delivery waits for nothing.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "../../db/pool.ts";
import { recordRoboticsTrail, SYSTEM_ACTOR } from "../../db/robotics-trail.ts";
import type { Log } from "../../runtime/log.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import {
  type DisabledRow,
  disableEndpoints,
  type EndpointOutcomeRow,
  type OutcomeRow,
  writeOutcomes,
} from "../sql/outcomes.ts";
import type { EndpointWork } from "./endpoint-work.ts";

export interface OutcomeWriterDeps {
  readonly database: Database;
  readonly log: Pick<Log, "warn" | "info">;
}

export class OutcomeWriter {
  readonly #deps: OutcomeWriterDeps;
  #gathering: OutcomeRow[] = [];
  #underWay: readonly OutcomeRow[] = [];
  #touched = new Set<EndpointWork>();
  #isWriting = false;
  /** Resolves when what is gathering now is written; the one before it, when what is under way is. */
  #gathered = Promise.withResolvers<void>();

  constructor(deps: OutcomeWriterDeps) {
    this.#deps = deps;
  }

  add(outcome: OutcomeRow, work: EndpointWork): void {
    this.#gathering.push(outcome);
    this.#touched.add(work);
    if (!this.#isWriting) void this.#write();
  }

  /** So many outcomes wait for PostgreSQL that nothing more should be sent. */
  get isFull(): boolean {
    return this.#gathering.length >= SIGNER_LIMITS.unwrittenOutcomes;
  }

  /** The deliveries whose outcome is not written yet. */
  unwritten(): readonly number[] {
    return [...this.#gathering, ...this.#underWay].map((outcome) => outcome.delivery_id);
  }

  /** Resolves when everything added so far is written, or given up. */
  async settled(): Promise<void> {
    if (this.#isWriting) await this.#gathered.promise;
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    this.#isWriting = true;
    // What has ended in the same turn of the event loop goes together.
    await Promise.resolve();
    for (;;) {
      const gathered = this.#gathered;
      this.#underWay = this.#gathering;
      this.#gathering = [];
      this.#gathered = Promise.withResolvers<void>();
      const endpoints = [...this.#touched].flatMap((work) => work.takeOutcome(Date.now()) ?? []);
      this.#touched = new Set();
      await this.#writeBatch(this.#underWay, endpoints);
      this.#underWay = [];
      gathered.resolve();
      if (this.#gathering.length === 0) break;
    }
    this.#isWriting = false;
    // Nobody has added anything since; whoever waits has nothing to wait for.
    this.#gathered.resolve();
    this.#gathered = Promise.withResolvers<void>();
  }

  /** What cannot be written in the end is sent again when its claim is over: at least once, never lost. */
  async #writeBatch(outcomes: readonly OutcomeRow[], endpoints: readonly EndpointOutcomeRow[]): Promise<void> {
    const { log } = this.#deps;
    for (let attempt = 1; ; attempt += 1) {
      try {
        for (const { endpoint_id: endpointId, disabled_reason: reason } of await this.#store(outcomes, endpoints)) {
          log.warn({ endpointId, reason }, "a webhook endpoint is disabled");
        }
        return;
      } catch (error) {
        if (isRefusedData(error) && outcomes.length > 1) {
          // One of them cannot be stored: the others are not to wait for it, nor to be sent again.
          const middle = Math.ceil(outcomes.length / 2);
          await this.#writeBatch(outcomes.slice(0, middle), endpoints);
          await this.#writeBatch(outcomes.slice(middle), []);
          return;
        }
        if (attempt >= SIGNER_LIMITS.writeAttempts || isRefusedData(error)) {
          log.warn({ err: error, outcomes: outcomes.length }, "outcomes of deliveries could not be written");
          return;
        }
        await delay(SIGNER_LIMITS.writePauseMs * attempt);
      }
    }
  }

  /** One statement, except when an endpoint is to be disabled, which its owner finds in the trail. */
  async #store(
    outcomes: readonly OutcomeRow[],
    endpoints: readonly EndpointOutcomeRow[],
  ): Promise<readonly DisabledRow[]> {
    const { database } = this.#deps;
    const disabling = endpoints.filter((row) => row.disabled_reason !== null);
    if (disabling.length === 0) {
      await writeOutcomes(database, { outcomes, endpoints });
      return [];
    }
    return await database.begin(async (sql) => {
      // First, because it holds the endpoints. What is still under way then is written all the same.
      const disabled = await disableEndpoints(sql, disabling);
      await writeOutcomes(sql, { outcomes, endpoints });
      for (const { endpoint_id: id, organization_id: organizationId, url, disabled_reason: reason } of disabled) {
        const subject = { kind: "webhook_endpoint", id } as const;
        const action = "webhook_endpoint_disabled";
        await recordRoboticsTrail(sql, { organizationId, actor: SYSTEM_ACTOR, action, subject, data: { url, reason } });
      }
      return disabled;
    });
  }
}

/** PostgreSQL answered that a value is not one that it can store (SQLSTATE classes 22 and 23): trying again changes nothing. */
function isRefusedData(error: unknown): boolean {
  return error instanceof Error && "code" in error && /^2[23]\w{3}$/.test(String(error.code));
}
