/** The reconciliation service compares the statements of providers and banks with payments. PostgreSQL has all its data. */
import type { Bus } from "../bus/connection.ts";
import * as dayReportMessages from "../bus/messages/day-report.ts";
import { reconciliationHealth } from "../bus/messages/health.ts";
import * as decisionMessages from "../bus/messages/import-decisions.ts";
import * as closingMessages from "../bus/messages/reconciliation-closings.ts";
import * as matchMessages from "../bus/messages/reconciliation-matches.ts";
import * as periodMessages from "../bus/messages/reconciliation-periods.ts";
import * as runMessages from "../bus/messages/reconciliation-runs.ts";
import * as accountMessages from "../bus/messages/statement-accounts.ts";
import * as importMessages from "../bus/messages/statement-imports.ts";
import * as lineMessages from "../bus/messages/statement-lines.ts";
import * as mappingMessages from "../bus/messages/statement-mappings.ts";
import { type Serving, serve, serveWith } from "../bus/operation.ts";
import { Failures } from "../bus/outage.ts";
import { readFile } from "../bus/statement-files.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { databaseSilence } from "../db/silence.ts";
import { stoppable } from "../db/stoppable.ts";
import { type Repeated, repeat, within } from "../runtime/repeat.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import { createSigningKey } from "../runtime/signing-key.ts";
import * as accounts from "./accounts.ts";
import { startAutomaticRuns } from "./automatic-runs.ts";
import * as closings from "./closings.ts";
import { reportDay } from "./day-report.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { statementFormat } from "./formats/registry.ts";
import * as decisions from "./import-decisions.ts";
import { importNext } from "./import-work.ts";
import * as imports from "./imports.ts";
import { CONNECTIONS, IMPORT_LIMITS, RUN_LIMITS } from "./limits.ts";
import * as lines from "./lines.ts";
import * as mappingTests from "./mapping-tests.ts";
import * as mappings from "./mappings.ts";
import * as matches from "./matches.ts";
import { addRunMetrics } from "./metrics.ts";
import { listPeriods } from "./periods.ts";
import { reconciliationRetention } from "./retention.ts";
import * as runs from "./runs.ts";
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
    ...decisions.startWithdrawals(deps),
    startRetention(reconciliationRetention({ database, bus: serviceDeps.bus }), log),
  ];
  return {
    async stop() {
      stopping.abort();
      await Promise.all(serving.map((served) => served.drain()));
      // Work that is cut off with its connection leaves nothing in the database.
      const cancelled = [...repeated.map((work) => work.stop()), ...deps.underWay];
      await within(Promise.all(cancelled), RUN_LIMITS.stopMs);
      await Promise.all([closeDatabase(database), closeDatabase(longDatabase)]);
    },
  };
}

/** Every operation that the service answers, with its handler. */
function serveAll(
  { bus, log, environment }: ServiceDeps,
  shared: ReconciliationDeps,
  stopping: AbortSignal,
): Serving[] {
  const { nc } = bus;
  const { database } = shared;
  const { CLOSING_SIGNING_KEY: secret } = parseSettings(reconciliationSettingsSchema, environment);
  const deps: closings.ClosingDeps & mappingTests.MappingTestDeps = {
    ...shared,
    closingKey: secret && createSigningKey(secret),
    openFile: (name) => readFile(bus, name),
    running: new Set(),
    stopping,
  };
  const responder = { nc, log, queue: NAME, claim: requestClaims(database), isSilent: databaseSilence(database) };
  const on = serveWith(responder, deps);
  return [
    serve(responder, reconciliationHealth, databaseHealth(nc, database)),
    on(accountMessages.listStatementAccounts, accounts.listStatementAccounts),
    on(accountMessages.getStatementAccount, accounts.getStatementAccount),
    on(accountMessages.createStatementAccount, accounts.createStatementAccount),
    on(accountMessages.changeStatementAccount, accounts.changeStatementAccount),
    on(runMessages.startRun, runs.startRun),
    on(runMessages.getRun, runs.getRun),
    on(runMessages.listRuns, runs.listRuns),
    on(runMessages.compareRuns, runs.compareRuns),
    on(matchMessages.listMatches, matches.listMatches),
    on(matchMessages.listCandidates, matches.listCandidates),
    on(matchMessages.confirmMatch, matches.confirmMatch),
    on(matchMessages.rejectMatch, matches.rejectMatch),
    on(importMessages.prepareImport, imports.prepareImport),
    on(importMessages.createImport, imports.createImport),
    on(importMessages.confirmImportFormat, imports.confirmImportFormat),
    on(importMessages.getImport, imports.getImport),
    on(importMessages.listImports, imports.listImports),
    on(periodMessages.listPeriods, listPeriods),
    on(closingMessages.closePeriod, closings.closePeriod),
    on(closingMessages.getClosing, closings.getClosing),
    on(closingMessages.listClosings, closings.listClosings),
    on(closingMessages.listClosingItems, closings.listClosingItems),
    on(closingMessages.listClosingKeys, closings.listClosingKeys),
    on(dayReportMessages.reportDay, reportDay),
    on(mappingMessages.listStatementMappings, mappings.listStatementMappings),
    on(mappingMessages.getStatementMapping, mappings.getStatementMapping),
    on(mappingMessages.createStatementMapping, mappings.createStatementMapping),
    on(mappingMessages.previewStatementMapping, mappings.previewStatementMapping),
    on(mappingMessages.testStatementMapping, mappingTests.testStatementMapping),
    on(mappingMessages.getMappingTest, mappingTests.getMappingTest),
    on(lineMessages.listLines, lines.listLines),
    on(lineMessages.listImportLines, lines.listImportLines),
    on(lineMessages.listMalformedRows, lines.listMalformedRows),
    on(decisionMessages.releaseImport, decisions.releaseImport),
    on(decisionMessages.withdrawImport, decisions.withdrawImport),
  ];
}

interface WorkerDeps extends Pick<ReconciliationDeps, "database" | "longDatabase" | "log"> {
  readonly bus: Pick<Bus, "nc">;
  readonly stopping: AbortSignal;
}

/** Imports the files that wait, a few at a time in each process, until stopped. */
function startImports({ database, longDatabase, log, bus, stopping }: WorkerDeps): Repeated[] {
  const openFile = (name: string): AsyncIterable<Uint8Array> => readFile(bus, name);
  const isShortOfSpace = shortOfSpace(bus);
  const failures = new Failures((...line) => log.warn(...line), "an import could not be carried out");
  const deps = { database, longDatabase, openFile, formatNamed: statementFormat, stopping, isShortOfSpace, failures };
  return Array.from({ length: IMPORT_LIMITS.importsAtOnce }, () =>
    repeat({ everyMs: IMPORT_LIMITS.waitingIntervalMs, what: "importing statements", log }, async (signal) => {
      while (!signal.aborted && !stopping.aborted && (await importNext(deps))) {
        // Until no file waits.
      }
    }),
  );
}
