/** The reconciliation service: the statements of providers and banks, and what they are compared with. PostgreSQL is its truth. */
import { reconciliationHealth } from "../bus/messages/health.ts";
import * as accountMessages from "../bus/messages/statement-accounts.ts";
import { type Serving, serve } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import * as accounts from "./accounts.ts";
import type { ReconciliationDeps } from "./deps.ts";

const NAME = "reconciliation";

/** Starts answering; several processes share the work. Throws UserError `invalid_setting`. */
export async function startReconciliationService(serviceDeps: ServiceDeps): Promise<Service> {
  const { settings, connections } = serviceDeps;
  const database = openDatabase({
    url: requireDatabaseUrl(settings),
    name: `device-payments ${NAME}`,
    maxConnections: connections,
  });
  const serving = serveAll(serviceDeps, { database });
  return {
    async stop() {
      await Promise.all(serving.map((served) => served.drain()));
      await closeDatabase(database);
    },
  };
}

function serveAll({ bus: { nc }, log }: ServiceDeps, deps: ReconciliationDeps): Serving[] {
  const responder = { nc, log, queue: NAME, claim: requestClaims(deps.database) };
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
  ];
}
