/** The audit service: copies every commit of the station logs to PostgreSQL, and answers questions about the past from this copy. */
import { jetstreamManager } from "@nats-io/jetstream";
import * as eventMessages from "../bus/messages/events.ts";
import { auditHealth } from "../bus/messages/health.ts";
import * as paymentMessages from "../bus/messages/payments.ts";
import * as timelineMessages from "../bus/messages/timelines.ts";
import { serve } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { databaseSilence } from "../db/silence.ts";
import { sample } from "../runtime/repeat.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import { startCopiers } from "./copy/copier.ts";
import { readCopyLags } from "./copy/progress.ts";
import type { AuditDeps } from "./deps.ts";
import { listStationEvents } from "./events.ts";
import { AUDIT_LIMITS } from "./limits.ts";
import { addCopierMetrics, addLagMetrics } from "./metrics.ts";
import { getOverview, listPayments } from "./payments.ts";
import { copyRetention } from "./retention.ts";
import { auditSettingsSchema } from "./settings.ts";
import { getIntentTimeline } from "./timeline/timeline.ts";

const NAME = "audit";

/** Starts the service. Of several processes one copies each log, and all of them answer, as one queue group. */
export async function startAuditService(serviceDeps: ServiceDeps): Promise<Service> {
  const { bus, log, logs, settings, environment, metrics, connections } = serviceDeps;
  const auditSettings = parseSettings(auditSettingsSchema, environment);
  const url = requireDatabaseUrl(settings);
  const copying = openDatabase({ url, name: `${NAME} copier`, maxConnections: AUDIT_LIMITS.copierConnections });
  const { copierConnections, readerConnections } = AUDIT_LIMITS;
  const readers = connections === undefined ? readerConnections : connections - copierConnections;
  const database = openDatabase({ url, name: NAME, maxConnections: readers });
  const jsm = await jetstreamManager(bus.nc, { timeout: AUDIT_LIMITS.leaderMs, checkAPI: false });
  const deps: AuditDeps = { bus, jsm, logs, database, log };
  const responder = { nc: bus.nc, log, queue: NAME, isSilent: databaseSilence(database) };
  const copier = startCopiers({ ...deps, ...auditSettings, database: copying, metrics: addCopierMetrics(metrics) });
  const lag = sample(() => readCopyLags(deps), AUDIT_LIMITS.lagReadMs);
  addLagMetrics(metrics, deps.logs, lag);
  const health = databaseHealth(deps.bus.nc, database, async () => {
    const known = await lag();
    return known?.some(({ lateMs }) => lateMs > AUDIT_LIMITS.lateMs) === true ? "copy_late" : null;
  });
  const retention = startRetention(copyRetention(deps, auditSettings), log);
  const serving = [
    serve(responder, timelineMessages.getIntentTimeline, (request) => getIntentTimeline(deps, request)),
    serve(responder, eventMessages.listStationEvents, (request) => listStationEvents(deps, request)),
    serve(responder, paymentMessages.listPayments, (request) => listPayments(deps, request)),
    serve(responder, paymentMessages.getOverview, (request) => getOverview(deps, request)),
    serve(responder, auditHealth, health),
  ];
  return {
    async stop() {
      await Promise.all(serving.map((served) => served.drain()));
      await Promise.all([copier.stop(), retention.stop()]);
      await Promise.all([closeDatabase(copying), closeDatabase(database)]);
    },
  };
}
