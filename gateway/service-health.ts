/**
 * The health of the services behind the bus. The gateway asks all of them at once, only when a client reads its readiness, and
 * at most once a second. So a client that reads the readiness very often puts no load on the bus.
 */
import type { NatsConnection } from "nats";
import type { z } from "zod";
import {
  auditHealth,
  providersHealth,
  reconciliationHealth,
  registryHealth,
  relayHealth,
  roboticsHealth,
  type ServiceHealth,
  settlementHealth,
  stationsHealth,
  webhookSignerHealth,
} from "../services/bus/messages/health.ts";
import { call, type Operation } from "../services/bus/operation.ts";
import { within } from "../services/runtime/repeat.ts";
import { LIMITS } from "./limits.ts";

/** The services that work with the database. */
const DATABASE_SERVICES = {
  registry: registryHealth,
  settlement: settlementHealth,
  providers: providersHealth,
  audit: auditHealth,
  relay: relayHealth,
  robotics: roboticsHealth,
  webhook_signer: webhookSignerHealth,
  reconciliation: reconciliationHealth,
} as const;
type DatabaseService = keyof typeof DATABASE_SERVICES;
export const DATABASE_SERVICE_NAMES = Object.keys(DATABASE_SERVICES) as readonly DatabaseService[];

export interface LastAnswer<T> {
  /** Undefined when the service has not answered the last request. */
  readonly health: T | undefined;
  /** When the service last answered; undefined when it never has. */
  readonly answeredAtMs: number | undefined;
}

export interface ServiceAnswers extends Readonly<Record<DatabaseService, LastAnswer<ServiceHealth>>> {
  readonly stationHosts: LastAnswer<{ readonly partitionsOwned: number; readonly isClockWrong: boolean }>;
  /** When a service last reported that PostgreSQL answers. */
  readonly databaseAnsweredAtMs: number | undefined;
}

const NEVER = { health: undefined, answeredAtMs: undefined } as const;

export class ServicesHealth {
  readonly #nc: NatsConnection;
  #answers: ServiceAnswers = {
    registry: NEVER,
    settlement: NEVER,
    providers: NEVER,
    audit: NEVER,
    relay: NEVER,
    robotics: NEVER,
    webhook_signer: NEVER,
    reconciliation: NEVER,
    stationHosts: NEVER,
    databaseAnsweredAtMs: undefined,
  };
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /**
   * The answers of the services. A report that the database is ready is at most `healthCachedMs` + `healthWaitMs` old. The
   * health of a service that has not answered the current request within `healthWaitMs` is unknown, unless it has last
   * reported that its database does not answer. Never rejects.
   */
  async check(): Promise<ServiceAnswers> {
    const nowMs = performance.now();
    if (this.#asking === undefined && nowMs - this.#askedAtMs >= LIMITS.healthCachedMs) {
      this.#askedAtMs = nowMs;
      this.#asking = this.#askAll().finally(() => {
        this.#asking = undefined;
      });
    }
    if (this.#asking !== undefined) await within(this.#asking, LIMITS.healthWaitMs);
    return this.#answers;
  }

  /** Stores each answer when it arrives, so that a service that hangs does not delay the others. */
  async #askAll(): Promise<void> {
    const services = DATABASE_SERVICE_NAMES.map(async (name) => {
      // A report that the database is ready may be wrong by now. A report that it does not answer stays.
      if (this.#answers[name].health?.databaseReady === true) this.#note(name, undefined);
      const health = await this.#ask(DATABASE_SERVICES[name]);
      this.#note(name, health);
      if (health?.databaseReady === true) this.#answers = { ...this.#answers, databaseAnsweredAtMs: performance.now() };
    });
    this.#note("stationHosts", undefined);
    const stationHosts = this.#ask(stationsHealth).then((health) => this.#note("stationHosts", health));
    await Promise.all([...services, stationHosts]);
  }

  #note<TName extends DatabaseService | "stationHosts">(name: TName, health: ServiceAnswers[TName]["health"]): void {
    const answeredAtMs = health === undefined ? this.#answers[name].answeredAtMs : performance.now();
    this.#answers = { ...this.#answers, [name]: { health, answeredAtMs } };
  }

  async #ask<TReply extends z.ZodType>(
    operation: Operation<z.ZodObject, TReply>,
  ): Promise<z.infer<TReply> | undefined> {
    try {
      return await call(this.#nc, operation, {}, LIMITS.healthAnswerMs);
    } catch {
      // No process runs, none answers in time, or its answer is not valid: a monitor treats all of these alike.
      return undefined;
    }
  }
}
