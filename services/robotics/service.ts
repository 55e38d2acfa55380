/** The robotics service: serving tasks, the consumers that carry them out, and the pause of a filial. PostgreSQL is its truth. */
import { roboticsHealth } from "../bus/messages/health.ts";
import * as messages from "../bus/messages/robotics.ts";
import { serve } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { repeat, sample } from "../runtime/repeat.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import { type Announce, announcer } from "./announce.ts";
import { authenticate } from "./consumers/authenticate.ts";
import { change, resetCredential } from "./consumers/change-consumer.ts";
import { create } from "./consumers/create-consumer.ts";
import { list as listConsumers } from "./consumers/list-consumers.ts";
import { seedSandbox } from "./consumers/seed-sandbox.ts";
import type { RoboticsDeps } from "./deps.ts";
import { addRoboticsFigures } from "./figures.ts";
import * as filials from "./filials/pause-resume.ts";
import { ROBOTICS_LIMITS } from "./limits.ts";
import { taskRetention } from "./retention.ts";
import { roboticsSettingsSchema } from "./settings.ts";
import { readOldestDueAgeMs } from "./sql/housekeeping.ts";
import { cancel } from "./tasks/cancel-task.ts";
import { accept, complete } from "./tasks/consumer-moves.ts";
import { expireDue } from "./tasks/expire-due.ts";
import { offer } from "./tasks/offer-task.ts";
import * as reading from "./tasks/read-tasks.ts";
import { listTrail } from "./trail/list-trail.ts";

const NAME = "robotics";

/** Starts answering and expiring; several processes share both. Throws UserError `invalid_setting`. */
export async function startRoboticsService(shared: ServiceDeps): Promise<Service> {
  const { bus, log, settings, environment, metrics } = shared;
  const own = parseSettings(roboticsSettingsSchema, environment);
  const database = openDatabase({
    url: requireDatabaseUrl(settings),
    name: `device-payments ${NAME}`,
    maxConnections: shared.connections,
  });
  const figures = addRoboticsFigures(metrics, {
    oldestDueAgeMs: sample(() => readOldestDueAgeMs(database), ROBOTICS_LIMITS.figureMs),
  });
  const deps: RoboticsDeps = { database, log, figures, retentionDays: own.ROBOTICS_TASK_RETENTION_DAYS };
  const serving = serveAll(bus.nc, deps, announcer(bus.nc, log));
  const repeated = [
    repeat({ everyMs: ROBOTICS_LIMITS.expiryIntervalMs, what: "expiring offers", log }, () => expireDue(deps)),
    startRetention(taskRetention(deps), log),
  ];
  return {
    async stop() {
      await Promise.all(serving.map((served) => served.drain()));
      await Promise.all(repeated.map((work) => work.stop()));
      await closeDatabase(database);
    },
  };
}

function serveAll(nc: ServiceDeps["bus"]["nc"], deps: RoboticsDeps, announce: Announce): ReturnType<typeof serve>[] {
  const ofTask = <T extends { readonly task: { readonly filialId: number } }>(reply: T): T => {
    announce(reply.task.filialId);
    return reply;
  };
  const ofFilial = <T extends { readonly robotics: { readonly filialId: number } }>(reply: T): T => {
    announce(reply.robotics.filialId);
    return reply;
  };
  const responder = { nc, log: deps.log, queue: NAME, claim: requestClaims(deps.database) };
  return [
    serve(responder, roboticsHealth, databaseHealth(nc, deps.database)),
    serve(responder, messages.authenticateConsumer, (request) => authenticate(deps, request)),
    serve(responder, messages.listConsumers, (request) => listConsumers(deps, request)),
    serve(responder, messages.createConsumer, (request) => create(deps, request)),
    serve(responder, messages.changeConsumer, (request) => change(deps, request)),
    serve(responder, messages.resetConsumerCredential, (request) => resetCredential(deps, request)),
    serve(responder, messages.offerTask, async (request) => ofTask(await offer(deps, request))),
    serve(responder, messages.cancelTask, async (request) => ofTask(await cancel(deps, request))),
    serve(responder, messages.listOwnTasks, (request) => reading.listOwn(deps, request)),
    serve(responder, messages.getOwnTask, (request) => reading.getOwn(deps, request)),
    serve(responder, messages.getFilialRobotics, (request) => filials.get(deps, request)),
    serve(responder, messages.pauseFilialRobotics, async (request) => ofFilial(await filials.pause(deps, request))),
    serve(responder, messages.resumeFilialRobotics, async (request) => ofFilial(await filials.resume(deps, request))),
    serve(responder, messages.listRoboticsTrail, (request) => listTrail(deps, request)),
    serve(responder, messages.listTasks, (request) => reading.list(deps, request)),
    serve(responder, messages.getTask, (request) => reading.get(deps, request)),
    serve(responder, messages.acceptTask, (request) => accept(deps, request)),
    serve(responder, messages.completeTask, (request) => complete(deps, request)),
    serve(responder, messages.seedSandboxConsumer, (request) => seedSandbox(deps, request)),
  ];
}
