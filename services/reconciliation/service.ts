/** The reconciliation service: the statements of providers and banks, and what they are compared with. PostgreSQL is its truth. */
import { reconciliationHealth } from "../bus/messages/health.ts";
import * as accountMessages from "../bus/messages/statement-accounts.ts";
import { type Serving, serve } from "../bus/operation.ts";
import { readFile } from "../bus/statement-files.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { databaseSilence } from "../db/silence.ts";
import { stoppable } from "../db/stoppable.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import { createSigningKey } from "../runtime/signing-key.ts";
import * as accounts from "./accounts.ts";
import { startAutomaticRuns } from "./automatic-runs.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { startWithdrawals } from "./import-decisions.ts";
import { startImports } from "./import-worker.ts";
import { CONNECTIONS, IMPORT_LIMITS } from "./limits.ts";
import { addRunMetrics } from "./metrics.ts";
import { reconciliationRetention } from "./retention.ts";
import { serveImports } from "./serve-imports.ts";
import { serveMappings } from "./serve-mappings.ts";
import { servePeriods } from "./serve-periods.ts";
import { serveRuns, settleRuns } from "./serve-runs.ts";
import { reconciliationSettingsSchema } from "./settings.ts";
import { shortOfSpace } from "./space.ts";

const NAME = "reconciliation";

/** Starts answering; several processes share the work. Throws UserError `invalid_setting`. */
export async function startReconciliationService(serviceDeps: ServiceDeps): Promise<Service> {
  const { settings, connections = CONNECTIONS.most, log, metrics } = serviceDeps;
  const url = requireDatabaseUrl(settings);
  const long = Math.max(1, Math.floor(connections / 2));
  const database = openDatabase({ url, name: NAME, maxConnections: connections - long });
  const { longestWorkMs } = IMPORT_LIMITS;
  const longDatabase = openDatabase({
    url,
    name: `${NAME} work`,
    maxConnections: long,
    longestWorkMs,
    idleInTransactionMs: longestWorkMs,
  });
  const stopping = new AbortController();
  const deps: ReconciliationDeps = {
    database,
    longDatabase: stoppable(longDatabase, { stopping: stopping.signal, canceller: database }),
    log,
    metrics: addRunMetrics(metrics, database),
    underWay: new Set(),
    startedRuns: new Set(),
  };
  const serving = serveAll(serviceDeps, deps, stopping.signal);
  const repeated = [
    ...startImports({ ...deps, bus: serviceDeps.bus, stopping: stopping.signal }),
    startAutomaticRuns({ ...deps, isShortOfSpace: shortOfSpace(serviceDeps.bus) }),
    ...startWithdrawals(deps),
    startRetention(reconciliationRetention({ database, bus: serviceDeps.bus }), log),
  ];
  return {
    async stop() {
      stopping.abort();
      await Promise.all(serving.map((served) => served.drain()));
      await settleRuns(deps, repeated);
      await Promise.all([closeDatabase(database), closeDatabase(longDatabase)]);
    },
  };
}

function serveAll({ bus, log, environment }: ServiceDeps, deps: ReconciliationDeps, stopping: AbortSignal): Serving[] {
  const { nc } = bus;
  const { CLOSING_SIGNING_KEY: secret } = parseSettings(reconciliationSettingsSchema, environment);
  const closingKey = secret && createSigningKey(secret);
  const responder = {
    nc,
    log,
    queue: NAME,
    claim: requestClaims(deps.database),
    isSilent: databaseSilence(deps.database),
  };
  return [
    serve(responder, reconciliationHealth, databaseHealth(nc, deps.database)),
    serve(responder, accountMessages.listStatementAccounts, async (request) =>
      accounts.listStatementAccounts(deps, request),
    ),
    serve(responder, accountMessages.getStatementAccount, async (request) =>
      accounts.getStatementAccount(deps, request),
    ),
    serve(responder, accountMessages.createStatementAccount, async (request) =>
      accounts.createStatementAccount(deps, request),
    ),
    serve(responder, accountMessages.changeStatementAccount, async (request) =>
      accounts.changeStatementAccount(deps, request),
    ),
    ...serveRuns(responder, deps),
    ...serveImports(responder, { database: deps.database, openFile: (name) => readFile(bus, name) }),
    ...servePeriods(responder, { ...deps, closingKey }),
    ...serveMappings(responder, { ...deps, openFile: (name) => readFile(bus, name), running: new Set(), stopping }),
  ];
}
