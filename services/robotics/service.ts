/** The robotics service: serving tasks, the consumers that carry them out, and the pause of a filial. PostgreSQL is its truth. */
import type { z } from "zod";
import * as consumerMessages from "../bus/messages/consumers.ts";
import * as eventMessages from "../bus/messages/events.ts";
import * as pauseMessages from "../bus/messages/filial-robotics.ts";
import { roboticsHealth } from "../bus/messages/health.ts";
import * as taskMessages from "../bus/messages/serving-tasks.ts";
import { type Operation, type Serving, serve } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { databaseSilence } from "../db/silence.ts";
import { DueTime, repeat, sample } from "../runtime/repeat.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import * as consumers from "./consumers.ts";
import type { RoboticsDeps } from "./deps.ts";
import { announcer, listRoboticsEvents } from "./events.ts";
import * as pause from "./filial-robotics.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import { addRoboticsMetrics } from "./metrics.ts";
import { taskRetention } from "./retention.ts";
import * as tasks from "./serving-tasks.ts";
import { roboticsSettingsSchema } from "./settings.ts";
import { readDueInMs, readOldestDueAgeMs } from "./sql/serving-tasks.ts";

const NAME = "robotics";

/** Starts answering and expiring; several processes share both. Throws UserError `invalid_setting`. */
export async function startRoboticsService(serviceDeps: ServiceDeps): Promise<Service> {
  const { log, settings, environment, connections } = serviceDeps;
  const { ROBOTICS_TASK_RETENTION_DAYS: retentionDays } = parseSettings(roboticsSettingsSchema, environment);
  const database = openDatabase({
    url: requireDatabaseUrl(settings),
    name: NAME,
    maxConnections: connections,
  });
  const metrics = addRoboticsMetrics(serviceDeps.metrics, {
    oldestDueAgeMs: sample(() => readOldestDueAgeMs(database), ROBOTICS_LIMITS.metricMs),
  });
  const deps: RoboticsDeps = { database, metrics, retentionDays };
  const serving = serveAll(serviceDeps, deps);
  const expiry = { everyMs: ROBOTICS_LIMITS.expiryIntervalMs, what: "expiring offers", log };
  const due = new DueTime(() => readDueInMs(database), ROBOTICS_LIMITS.expiryReadMs);
  const expireDue = async (): Promise<void> => {
    if (await due.isDue()) await tasks.expireOffers(deps);
  };
  const repeated = [repeat(expiry, expireDue), startRetention(taskRetention(deps), log)];
  return {
    async stop() {
      await Promise.all(serving.map((served) => served.drain()));
      await Promise.all(repeated.map((work) => work.stop()));
      await closeDatabase(database);
    },
  };
}

function serveAll({ bus: { nc }, log }: ServiceDeps, deps: RoboticsDeps): Serving[] {
  const responder = {
    nc,
    log,
    queue: NAME,
    claim: requestClaims(deps.database),
    isSilent: databaseSilence(deps.database),
  };
  const announce = announcer(nc, log);
  /** `changed` runs before the answer, so that the filial's events leave at once. */
  const on = <TRequest extends z.ZodType, TReply extends z.ZodType>(
    operation: Operation<TRequest, TReply>,
    handler: (deps: RoboticsDeps, request: z.infer<TRequest>) => Promise<z.infer<TReply>>,
    changed?: (reply: z.infer<TReply>) => void,
  ): Serving =>
    serve(responder, operation, async (request) => {
      const reply = await handler(deps, request);
      changed?.(reply);
      return reply;
    });
  return [
    serve(responder, roboticsHealth, databaseHealth(nc, deps.database)),
    on(consumerMessages.listRoboticsConsumers, consumers.listRoboticsConsumers),
    on(consumerMessages.createRoboticsConsumer, consumers.createRoboticsConsumer),
    on(consumerMessages.changeRoboticsConsumer, consumers.changeRoboticsConsumer),
    on(consumerMessages.resetRoboticsCredential, consumers.resetRoboticsCredential),
    on(consumerMessages.authenticateConsumer, consumers.authenticateConsumer),
    on(consumerMessages.seedSandboxConsumer, consumers.seedSandboxConsumer),
    on(taskMessages.listServingTasks, tasks.listServingTasks),
    on(taskMessages.getServingTask, tasks.getServingTask),
    on(taskMessages.offerServingTask, tasks.offerServingTask, ({ task }) => announce(task.filialId)),
    on(taskMessages.cancelServingTask, tasks.cancelServingTask, ({ task }) => announce(task.filialId)),
    on(taskMessages.listConsumerTasks, tasks.listConsumerTasks),
    on(taskMessages.getConsumerTask, tasks.getConsumerTask),
    on(taskMessages.acceptServingTask, tasks.acceptServingTask),
    on(taskMessages.completeServingTask, tasks.completeServingTask),
    on(pauseMessages.getFilialRobotics, pause.getFilialRobotics),
    on(pauseMessages.pauseFilialRobotics, pause.pauseFilialRobotics, ({ robotics }) => announce(robotics.filialId)),
    on(pauseMessages.resumeFilialRobotics, pause.resumeFilialRobotics, ({ robotics }) => announce(robotics.filialId)),
    on(eventMessages.listRoboticsEvents, listRoboticsEvents),
  ];
}
