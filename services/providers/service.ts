/** The providers service: payment providers, their callbacks, and the issues of money that does not fit. */
import * as limitMessages from "../bus/messages/attribution-limits.ts";
import * as proposalMessages from "../bus/messages/attribution-proposals.ts";
import * as callbackMessages from "../bus/messages/callbacks.ts";
import { providersHealth } from "../bus/messages/health.ts";
import * as overviewMessages from "../bus/messages/issue-overview.ts";
import * as issueMessages from "../bus/messages/issues.ts";
import * as payableOrderMessages from "../bus/messages/payable-orders.ts";
import * as configMessages from "../bus/messages/provider-configs.ts";
import * as eventMessages from "../bus/messages/provider-events.ts";
import * as paymentMessages from "../bus/messages/provider-payments.ts";
import { type ServeDeps, type Serving, serve, serveWith } from "../bus/operation.ts";
import { followSwitches } from "../bus/switches-replica.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { databaseSilence } from "../db/silence.ts";
import { type ClosingDeps, closeIssue, closeIssues } from "../issues/closing.ts";
import { getIssueOverview, listOperators } from "../issues/issue-overview.ts";
import { assignIssue, commentIssue, listIssues } from "../issues/life-cycle.ts";
import { ISSUE_LIMITS } from "../issues/limits.ts";
import { addIssueGauges } from "../issues/metrics.ts";
import { summarizeUnresolved } from "../issues/sql/issues.ts";
import { undoIssueClosing, undoIssueClosings } from "../issues/undoing.ts";
import { FairSlots } from "../runtime/fair-slots.ts";
import { createKeyring } from "../runtime/keyring.ts";
import { type Repeated, repeat, sample } from "../runtime/repeat.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import { emvcoGeneric } from "./adapters/emvco-generic.ts";
import { createHttpClient } from "./adapters/http-client.ts";
import { sandboxAdapter } from "./adapters/sandbox.ts";
import { getIssue, listAttributionLimits, setAttributionLimit } from "./attribution-limits.ts";
import { attributeIssue, finishInterruptedAttributions } from "./attributions.ts";
import { createCallbackConfigs } from "./callback-configs.ts";
import { receiveCallback, refuseLargeCallback } from "./callbacks.ts";
import { announceMarked } from "./choices.ts";
import * as configs from "./configs.ts";
import type { ProvidersDeps } from "./deps.ts";
import { listProviderEvents } from "./events.ts";
import { closeSettledIssues, moneyRules } from "./issues.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { addProviderMetrics, addTaskGauges } from "./metrics.ts";
import { listPayableOrders } from "./payable-orders.ts";
import { createProviderPayment, findRecordedConfirmation, withdrawProviderPayment } from "./payments.ts";
import * as proposals from "./proposals.ts";
import { createRefusalThrottle } from "./refusal-throttle.ts";
import { providersRetention } from "./retention.ts";
import { resealSecrets } from "./secrets.ts";
import { providersSettingsSchema } from "./settings.ts";
import { summarizeOpenTasks } from "./sql/tasks.ts";
import { startTaskRunner } from "./task-runner.ts";
import { runTask } from "./tasks.ts";

const NAME = "providers";

/** Several processes share the requests and the tasks. Throws UserError for a key that is missing or wrong. */
export async function startProvidersService(options: ServiceDeps): Promise<Service> {
  const { bus, log, environment, metrics: registry } = options;
  const settings = parseSettings(providersSettingsSchema, environment);
  const keyring = createKeyring(settings.PROVIDER_SECRETS_KEY, settings.PROVIDER_SECRETS_OLD_KEYS);
  const database = openDatabase({
    url: requireDatabaseUrl(options.settings),
    name: NAME,
    maxConnections: options.connections ?? PROVIDER_LIMITS.databaseConnections,
  });
  try {
    const resealed = await resealSecrets(database, keyring);
    if (resealed > 0) log.info({ resealed }, "provider secrets are sealed with the current key");
  } catch (error) {
    await closeDatabase(database);
    throw error;
  }
  const metrics = addProviderMetrics(registry);
  const { summaryTasks, summaryMs } = PROVIDER_LIMITS;
  addTaskGauges(
    registry,
    sample(() => summarizeOpenTasks(database, summaryTasks), summaryMs),
  );
  addIssueGauges(
    registry,
    sample(() => summarizeUnresolved(database), ISSUE_LIMITS.summaryMs),
  );
  const http = createHttpClient(metrics);
  const switches = await followSwitches(bus, log);
  const tasks = startTaskRunner({ database, log, metrics, run: (task) => runTask(deps, task) });
  const deps: ProvidersDeps = {
    bus,
    database,
    log,
    metrics,
    keyring,
    adapters: {
      sandbox: sandboxAdapter(http, {
        url: settings.SANDBOX_PROVIDER_URL,
        installationKey: settings.SANDBOX_PROVIDER_INSTALLATION_KEY?.toString("base64url"),
      }),
      emvco_generic: emvcoGeneric,
    },
    switches,
    refusals: createRefusalThrottle(),
    callbackConfigs: createCallbackConfigs({ database, keyring }),
    ...createSlots(),
    tasks,
    callbackUrl: (configId) =>
      new URL(`/api/providers/v1/${configId}/callback/`, settings.PROVIDER_CALLBACK_BASE_URL).href,
  };
  const serving = serveAll(deps);
  const repeated = startRepeated(deps);
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

function createSlots(): Pick<ProvidersDeps, "callbackSlots" | "suspectCallbackSlots" | "creations"> {
  const limits = PROVIDER_LIMITS;
  return {
    callbackSlots: new FairSlots({
      total: limits.callbacksAtOnce,
      perKey: limits.callbacksAtOncePerConfig,
      waiting: limits.callbacksWaiting,
      waitingPerKey: limits.callbacksWaitingPerConfig,
    }),
    suspectCallbackSlots: new FairSlots({
      total: limits.suspectCallbacksAtOnce,
      perKey: limits.suspectCallbacksAtOncePerConfig,
      waiting: 0,
      waitingPerKey: 0,
    }),
    creations: new FairSlots({
      total: limits.creationsAtOnce,
      perKey: limits.creationsAtOncePerConfig,
      keptForNewKeys: limits.creationsKeptForNewConfigs,
      waiting: limits.creationsWaiting,
      waitingPerKey: limits.creationsWaitingPerConfig,
    }),
  };
}

/** What the service does without a request. */
function startRepeated(deps: ProvidersDeps): Repeated[] {
  const { database, log, callbackConfigs } = deps;
  const { announceIntervalMs, newConfigsIntervalMs } = PROVIDER_LIMITS;
  const { attributionIntervalMs, settledIssuesIntervalMs, proposalsIntervalMs } = PROVIDER_LIMITS;
  return [
    repeat({ everyMs: announceIntervalMs, what: "announcing providers to stations", log }, () =>
      announceMarked(database),
    ),
    repeat({ everyMs: newConfigsIntervalMs, what: "reading new provider configs", log }, () =>
      callbackConfigs.readNew(),
    ),
    repeat(
      { everyMs: attributionIntervalMs, what: "finishing attributions", log },
      finishInterruptedAttributions(deps),
    ),
    repeat({ everyMs: proposalsIntervalMs, what: "ending proposals of attributions", log }, () =>
      proposals.endProposals(database),
    ),
    repeat({ everyMs: settledIssuesIntervalMs, what: "closing issues that are settled", log }, () =>
      closeSettledIssues(database),
    ),
    startRetention(providersRetention(deps), log),
  ];
}

function serveAll(deps: ProvidersDeps): Serving[] {
  const responder = {
    nc: deps.bus.nc,
    log: deps.log,
    queue: NAME,
    claim: requestClaims(deps.database),
    isSilent: databaseSilence(deps.database),
  };
  const { callbackRequestsInFlight, creationRequestsInFlight } = PROVIDER_LIMITS;
  const on = serveWith(responder, deps);
  const onCallback = serveWith({ ...responder, requestsInFlight: callbackRequestsInFlight }, deps);
  const onCreation = serveWith({ ...responder, requestsInFlight: creationRequestsInFlight }, deps);
  return [
    serve(responder, providersHealth, databaseHealth(deps.bus.nc, deps.database)),
    onCreation(paymentMessages.createProviderPayment, createProviderPayment),
    on(paymentMessages.findRecordedConfirmation, findRecordedConfirmation),
    on(paymentMessages.withdrawProviderPayment, withdrawProviderPayment),
    onCallback(callbackMessages.receiveCallback, receiveCallback),
    on(callbackMessages.refuseLargeCallback, refuseLargeCallback),
    on(configMessages.listProviderConfigs, configs.listProviderConfigs),
    on(configMessages.createProviderConfig, (using, request) => configs.createProviderConfig(using, request)),
    on(configMessages.changeProviderConfig, configs.changeProviderConfig),
    on(configMessages.rotateProviderSecret, configs.rotateProviderSecret),
    on(configMessages.ensureTestConfig, configs.ensureTestConfig),
    on(configMessages.seedSandboxProvider, configs.seedSandboxProvider),
    on(eventMessages.listProviderEvents, listProviderEvents),
    ...serveIssues(deps, responder),
  ];
}

/** All issues, whichever service has raised them: the rules of provider money are here. */
function serveIssues(deps: ProvidersDeps, responder: ServeDeps): Serving[] {
  const closing: ClosingDeps = {
    database: deps.database,
    rules: moneyRules(deps),
    nowMs: () => deps.bus.clock.nowMs(),
  };
  const on = serveWith(responder, deps);
  const onClosing = serveWith(responder, closing);
  return [
    on(issueMessages.listIssues, listIssues),
    on(overviewMessages.getIssueOverview, getIssueOverview),
    on(overviewMessages.listOperators, listOperators),
    on(issueMessages.getIssue, getIssue),
    on(issueMessages.assignIssue, assignIssue),
    on(issueMessages.commentIssue, commentIssue),
    on(issueMessages.attributeIssue, attributeIssue),
    on(payableOrderMessages.listPayableOrders, listPayableOrders),
    on(proposalMessages.proposeAttribution, proposals.proposeAttribution),
    on(proposalMessages.confirmAttribution, proposals.confirmAttribution),
    on(proposalMessages.rejectAttribution, proposals.rejectAttribution),
    on(proposalMessages.withdrawAttribution, proposals.withdrawAttribution),
    on(limitMessages.listAttributionLimits, listAttributionLimits),
    on(limitMessages.setAttributionLimit, setAttributionLimit),
    onClosing(issueMessages.closeIssue, closeIssue),
    onClosing(issueMessages.closeIssues, closeIssues),
    onClosing(issueMessages.undoIssueClosing, undoIssueClosing),
    onClosing(issueMessages.undoIssueClosings, undoIssueClosings),
  ];
}
