/**
 * How the services behind the bus are. They are asked when readiness is asked for, at most once a second and all at once,
 * so that whoever asks this gateway cannot load the bus.
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
export type DatabaseService = keyof typeof DATABASE_SERVICES;
export const DATABASE_SERVICE_NAMES = Object.keys(DATABASE_SERVICES) as readonly DatabaseService[];

/** The last answer of a service. */
export interface Heard<T> {
  /** Undefined when it has not answered the last request. */
  readonly health: T | undefined;
  /** When it last answered; undefined when it never did. */
  readonly answeredAtMs: number | undefined;
}

export interface ServicesSeen extends Readonly<Record<DatabaseService, Heard<ServiceHealth>>> {
  readonly stationHosts: Heard<{ readonly partitionsOwned: number; readonly isClockWrong: boolean }>;
  /** When PostgreSQL last answered any of them. */
  readonly databaseAnsweredAtMs: number | undefined;
}

const NEVER = { health: undefined, answeredAtMs: undefined } as const;

export class ServicesHealth {
  readonly #nc: NatsConnection;
  #seen: ServicesSeen = {
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
   * What the services have answered: an answer that says "ready" is at most `healthCachedMs` + `healthWaitMs` old. A
   * service that has not answered the current request within `healthWaitMs` counts as unknown, unless its last answer was
   * that its database does not answer. Never rejects.
   */
  async check(): Promise<ServicesSeen> {
    const nowMs = performance.now();
    if (this.#asking === undefined && nowMs - this.#askedAtMs >= LIMITS.healthCachedMs) {
      this.#askedAtMs = nowMs;
      this.#asking = this.#askAll().finally(() => {
        this.#asking = undefined;
      });
    }
    if (this.#asking !== undefined) await within(this.#asking, LIMITS.healthWaitMs);
    return this.#seen;
  }

  /** Each answer counts as soon as it is there, so a service that hangs delays no other. */
  async #askAll(): Promise<void> {
    const services = DATABASE_SERVICE_NAMES.map(async (name) => {
      // Only the word that the database does not answer outlives its answer: an old "ready" may be wrong by now.
      if (this.#seen[name].health?.databaseReady === true) this.#note(name, undefined);
      const health = await this.#ask(DATABASE_SERVICES[name]);
      this.#note(name, health);
      if (health?.databaseReady === true) this.#seen = { ...this.#seen, databaseAnsweredAtMs: performance.now() };
    });
    this.#note("stationHosts", undefined);
    const stationHosts = this.#ask(stationsHealth).then((health) => this.#note("stationHosts", health));
    await Promise.all([...services, stationHosts]);
  }

  #note<TName extends DatabaseService | "stationHosts">(name: TName, health: ServicesSeen[TName]["health"]): void {
    const answeredAtMs = health === undefined ? this.#seen[name].answeredAtMs : performance.now();
    this.#seen = { ...this.#seen, [name]: { health, answeredAtMs } };
  }

  async #ask<TReply extends z.ZodType>(
    operation: Operation<z.ZodObject, TReply>,
  ): Promise<z.infer<TReply> | undefined> {
    try {
      return await call(this.#nc, operation, {}, LIMITS.healthAnswerMs);
    } catch {
      // No process is there, none answers in time, or its answer is not understood: all the same to a monitor.
      return undefined;
    }
  }
}
