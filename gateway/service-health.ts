/**
 * How the services behind the bus are. They are asked when somebody wants to know, at most once a second and all at once,
 * so that whoever asks this gateway cannot load the bus.
 */
import type { NatsConnection } from "nats";
import type { z } from "zod";
import {
  auditHealth,
  providersHealth,
  registryHealth,
  relayHealth,
  roboticsHealth,
  type ServiceHealth,
  settlementHealth,
  stationsHealth,
  webhookSignerHealth,
} from "../services/bus/messages/health.ts";
import { call, type Operation } from "../services/bus/operation.ts";
import { LIMITS } from "./limits.ts";

/** The services that work with the database. */
export const DATABASE_SERVICES = {
  registry: registryHealth,
  settlement: settlementHealth,
  providers: providersHealth,
  audit: auditHealth,
  relay: relayHealth,
  robotics: roboticsHealth,
  webhook_signer: webhookSignerHealth,
} as const;
export type DatabaseService = keyof typeof DATABASE_SERVICES;
export const DATABASE_SERVICE_NAMES = Object.keys(DATABASE_SERVICES) as readonly DatabaseService[];

/** The last that was heard of a service. */
export interface Heard<T> {
  /** Undefined when it did not answer when it was last asked. */
  readonly health: T | undefined;
  /** When it last answered; undefined when it never did. */
  readonly answeredAtMs: number | undefined;
}

export interface ServicesHeard extends Readonly<Record<DatabaseService, Heard<ServiceHealth>>> {
  readonly stationHosts: Heard<{ readonly partitionsOwned: number }>;
  /** When PostgreSQL last answered any of them. */
  readonly databaseAnsweredAtMs: number | undefined;
}

const NEVER = { health: undefined, answeredAtMs: undefined } as const;

export class ServicesHealth {
  readonly #nc: NatsConnection;
  #heard: ServicesHeard = {
    registry: NEVER,
    settlement: NEVER,
    providers: NEVER,
    audit: NEVER,
    relay: NEVER,
    robotics: NEVER,
    webhook_signer: NEVER,
    stationHosts: NEVER,
    databaseAnsweredAtMs: undefined,
  };
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /** What is known, at most a second old while the services answer. Never rejects, and never takes long. */
  async look(): Promise<ServicesHeard> {
    const nowMs = performance.now();
    if (this.#asking === undefined && nowMs - this.#askedAtMs >= LIMITS.healthCachedMs) {
      this.#askedAtMs = nowMs;
      this.#asking = this.#askAll().finally(() => {
        this.#asking = undefined;
      });
    }
    if (this.#asking !== undefined) await within(this.#asking, LIMITS.healthWaitMs);
    return this.#heard;
  }

  async #askAll(): Promise<void> {
    const known = this.#heard;
    const [services, stationHosts] = await Promise.all([
      Promise.all(
        DATABASE_SERVICE_NAMES.map(
          async (name) => [name, await this.#ask(DATABASE_SERVICES[name], known[name])] as const,
        ),
      ),
      this.#ask(stationsHealth, known.stationHosts),
    ]);
    const hasDatabase = services.some(([, { health }]) => health?.databaseReady === true);
    const databaseAnsweredAtMs = hasDatabase ? performance.now() : known.databaseAnsweredAtMs;
    this.#heard = { ...known, ...Object.fromEntries(services), stationHosts, databaseAnsweredAtMs };
  }

  async #ask<TReply extends z.ZodType>(
    operation: Operation<z.ZodObject, TReply>,
    before: Heard<z.infer<TReply>>,
  ): Promise<Heard<z.infer<TReply>>> {
    try {
      const health = await call(this.#nc, operation, {}, LIMITS.healthAnswerMs);
      return { health, answeredAtMs: performance.now() };
    } catch {
      // Nobody is there, nobody answers in time, or what answers cannot tell: all the same to whoever watches.
      return { health: undefined, answeredAtMs: before.answeredAtMs };
    }
  }
}

async function within(work: Promise<void>, limitMs: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, limitMs);
  await Promise.race([work, late.promise]);
  clearTimeout(timer);
}
