/** The providers service: payment providers, their callbacks, and the money that does not fit. */

import * as callbackMessages from "../bus/messages/callbacks.ts";
import { providersHealth } from "../bus/messages/health.ts";
import * as issueMessages from "../bus/messages/issues.ts";
import * as configMessages from "../bus/messages/provider-configs.ts";
import * as paymentMessages from "../bus/messages/provider-payments.ts";
import { serve } from "../bus/operation.ts";
import { followSwitches } from "../bus/switches-replica.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { FairSlots } from "../runtime/fair-slots.ts";
import { createKeyring } from "../runtime/keyring.ts";
import { repeat } from "../runtime/repeat.ts";
import { sample } from "../runtime/sample.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import { createAdapters } from "./adapters/adapters.ts";
import { createHttpClient } from "./adapters/http-client.ts";
import { createCallbackConfigs } from "./callbacks/callback-configs.ts";
import { receive, refuseLarge } from "./callbacks/receive-callback.ts";
import { createRefusalThrottle } from "./callbacks/refusal-throttle.ts";
import { tellStations } from "./configs/announce.ts";
import { changeConfig } from "./configs/change-config.ts";
import { createConfig } from "./configs/create-config.ts";
import { listConfigs, listEvents } from "./configs/list-configs.ts";
import { recoverStations } from "./configs/recover-stations.ts";
import { rotateSecret } from "./configs/rotate-secret.ts";
import { seedSandbox } from "./configs/seed-sandbox.ts";
import type { ProvidersDeps } from "./deps.ts";
import { addProviderFigures, addTaskGauges } from "./figures.ts";
import { removeOldRows } from "./housekeeping.ts";
import { attribute } from "./issues/attribute-issue.ts";
import { close } from "./issues/close-issue.ts";
import { closeSettledIssues } from "./issues/close-settled-issues.ts";
import { leftAttributions } from "./issues/left-attributions.ts";
import { list } from "./issues/list-issues.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { createPayment } from "./payments/create-payment.ts";
import { findConfirmation } from "./payments/find-confirmation.ts";
import { withdrawPayment } from "./payments/withdraw-payment.ts";
import { resealSecrets } from "./secrets/reseal.ts";
import { providersSettingsSchema } from "./settings.ts";
import { summarizeDueTasks } from "./sql/tasks.ts";
import { runTask } from "./tasks/run-task.ts";
import { startTaskRunner } from "./tasks/task-runner.ts";

const NAME = "providers";

/** Starts answering and working; several processes share both. Throws UserError for a key that is missing or wrong. */
export async function startProvidersService(given: ServiceDeps): Promise<Service> {
  const { bus, log, settings, environment, metrics } = given;
  const own = parseSettings(providersSettingsSchema, environment);
  const keyring = createKeyring(own.PROVIDER_SECRETS_KEY, own.PROVIDER_SECRETS_OLD_KEYS);
  const database = openDatabase({
    url: requireDatabaseUrl(settings),
    name: NAME,
    maxConnections: given.connections ?? PROVIDER_LIMITS.databaseConnections,
  });
  try {
    const resealed = await resealSecrets(database, keyring);
    if (resealed > 0) log.info({ resealed }, "provider secrets are sealed with the current key");
  } catch (error) {
    await closeDatabase(database);
    throw error;
  }
  const figures = addProviderFigures(metrics);
  const { summaryTasks, summaryMs } = PROVIDER_LIMITS;
  addTaskGauges(
    metrics,
    sample(() => summarizeDueTasks(database, summaryTasks), summaryMs),
  );
  const http = createHttpClient(figures);
  const switches = await followSwitches(bus, log);
  const callbackBase = own.PROVIDER_CALLBACK_BASE_URL;
  const tasks = startTaskRunner({ database, log, figures, run: (task) => runTask(deps, task) });
  const deps: ProvidersDeps = {
    bus,
    database,
    log,
    figures,
    keyring,
    adapters: createAdapters(http, {
      sandbox: {
        url: own.SANDBOX_PROVIDER_URL,
        installationKey: own.SANDBOX_PROVIDER_INSTALLATION_KEY?.toString("base64url"),
      },
    }),
    switches,
    refusals: createRefusalThrottle(),
    callbackConfigs: createCallbackConfigs({ database, keyring }),
    ...createSlots(),
    tasks,
    tellStations: async () => void (await tellStations(database)),
    callbackUrl: (configId) => new URL(`/api/providers/v1/${configId}/callback/`, callbackBase).href,
  };
  const serving = serveAll(deps);
  const { tellIntervalMs, attributionIntervalMs, housekeepingIntervalMs } = PROVIDER_LIMITS;
  const { recoveryIntervalMs, settledIssuesIntervalMs, newConfigsIntervalMs } = PROVIDER_LIMITS;
  const repeated = [
    repeat({ everyMs: tellIntervalMs, what: "telling stations of their provider", log }, deps.tellStations),
    repeat({ everyMs: newConfigsIntervalMs, what: "reading new provider configs", log }, () =>
      deps.callbackConfigs.readNew(),
    ),
    repeat({ everyMs: recoveryIntervalMs, what: "telling stations again", log }, () => recoverStations(database)),
    repeat({ everyMs: attributionIntervalMs, what: "finishing attributions", log }, leftAttributions(deps)),
    repeat({ everyMs: settledIssuesIntervalMs, what: "closing issues that are settled", log }, () =>
      closeSettledIssues(database),
    ),
    repeat({ everyMs: housekeepingIntervalMs, what: "removing old records", log }, () => removeOldRows(deps)),
  ];
  return {
    async stop() {
      await Promise.all(serving.map((served) => served.drain()));
      await Promise.all([tasks.stop(), ...repeated.map((work) => work.stop())]);
      switches.stop();
      await http.close();
      await closeDatabase(database);
    },
  };
}

function createSlots(): Pick<ProvidersDeps, "callbackSlots" | "doubtfulCallbackSlots" | "creations"> {
  const limits = PROVIDER_LIMITS;
  return {
    callbackSlots: new FairSlots({
      total: limits.callbacksAtOnce,
      perKey: limits.callbacksAtOncePerConfig,
      waiting: limits.callbacksWaiting,
      waitingPerKey: limits.callbacksWaitingPerConfig,
    }),
    doubtfulCallbackSlots: new FairSlots({
      total: limits.doubtfulCallbacksAtOnce,
      perKey: limits.doubtfulCallbacksAtOncePerConfig,
      waiting: 0,
      waitingPerKey: 0,
    }),
    creations: new FairSlots({
      total: limits.creationsAtOnce,
      perKey: limits.creationsAtOncePerConfig,
      waiting: limits.creationsWaiting,
      waitingPerKey: limits.creationsWaitingPerConfig,
    }),
  };
}

function serveAll(deps: ProvidersDeps): ReturnType<typeof serve>[] {
  const responder = { nc: deps.bus.nc, log: deps.log, queue: NAME, claim: requestClaims(deps.database) };
  return [
    serve(responder, providersHealth, databaseHealth(deps.bus.nc, deps.database)),
    serve(responder, paymentMessages.createProviderPayment, (request) => createPayment(deps, request)),
    serve(responder, paymentMessages.findRecordedConfirmation, (request) => findConfirmation(deps, request)),
    serve(responder, paymentMessages.withdrawProviderPayment, (request) => withdrawPayment(deps, request)),
    serve(
      { ...responder, requestsInFlight: PROVIDER_LIMITS.callbackRequestsInFlight },
      callbackMessages.receiveCallback,
      (request) => receive(deps, request),
    ),
    serve(responder, callbackMessages.refuseLargeCallback, (request) => refuseLarge(deps, request)),
    serve(responder, configMessages.listProviderConfigs, (request) => listConfigs(deps, request)),
    serve(responder, configMessages.createProviderConfig, (request) => createConfig(deps, request)),
    serve(responder, configMessages.changeProviderConfig, (request) => changeConfig(deps, request)),
    serve(responder, configMessages.rotateProviderSecret, (request) => rotateSecret(deps, request)),
    serve(responder, configMessages.seedSandboxProvider, (request) => seedSandbox(deps, request)),
    serve(responder, configMessages.listProviderEvents, (request) => listEvents(deps, request)),
    serve(responder, issueMessages.listIssues, (request) => list(deps, request)),
    serve(responder, issueMessages.attributeIssue, (request) => attribute(deps, request)),
    serve(responder, issueMessages.closeIssue, (request) => close(deps, request)),
  ];
}
