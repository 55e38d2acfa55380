/** The webhook signer: events become deliveries, deliveries become signed requests, and each attempt is recorded. */
import { diskOf } from "../bus/disk-gate.ts";
import { webhookSignerHealth } from "../bus/messages/health.ts";
import * as deliveryMessages from "../bus/messages/webhook-deliveries.ts";
import * as endpointMessages from "../bus/messages/webhook-endpoints.ts";
import { type Serving, serve, serveWith } from "../bus/operation.ts";
import { WEBHOOKS_DUE } from "../bus/subjects.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, type Database, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { databaseSilence } from "../db/silence.ts";
import { isShort } from "../runtime/disk-watch.ts";
import { createKeyring, type Keyring } from "../runtime/keyring.ts";
import type { Log } from "../runtime/log.ts";
import { repeat, sample } from "../runtime/repeat.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import { type Clock, startClock } from "./clock.ts";
import * as deliveries from "./deliveries.ts";
import type { SignerDeps } from "./deps.ts";
import { testWebhookEndpoint } from "./endpoint-tests.ts";
import * as endpoints from "./endpoints.ts";
import { createSender } from "./http/sender.ts";
import { createSweep, followEvents, takeEvents } from "./intake.ts";
import { SIGNER_LIMITS } from "./limits.ts";
import { addSignerMetrics } from "./metrics.ts";
import { signerRetention } from "./retention.ts";
import { type Owners, startOwners } from "./sending/owners.ts";
import { TestSlots } from "./sending/slots.ts";
import { readSignerSettings } from "./settings.ts";
import { openSecrets, resealSecrets } from "./signing.ts";
import { summarizeDue } from "./sql/owners.ts";

const NAME = "webhook-signer";

/** Starts taking events and sending; several processes share both. Throws UserError for a key that is missing or wrong. */
export async function startWebhookSignerService({
  bus,
  log,
  settings,
  environment,
  metrics: registry,
  connections = SIGNER_LIMITS.databaseConnections,
}: ServiceDeps): Promise<Service> {
  const signer = readSignerSettings(environment);
  const keyring = createKeyring(signer.WEBHOOK_SECRETS_KEY, signer.WEBHOOK_SECRETS_OLD_KEYS);
  const allowLoopback = signer.WEBHOOK_ALLOW_LOOPBACK;
  if (allowLoopback) {
    log.warn(
      "WEBHOOK_ALLOW_LOOPBACK is on: webhooks of test consumers may go to this machine itself. For development only.",
    );
  }
  const database = openDatabase({ url: requireDatabaseUrl(settings), name: NAME, maxConnections: connections });
  const clock = await prepare(database, keyring, log);
  const sender = createSender({
    dnsServers: signer.WEBHOOK_DNS_SERVERS,
    caFile: signer.WEBHOOK_CA_FILE,
    ownNetworks: signer.WEBHOOK_OWN_NETWORKS,
    nowMs: clock.nowMs,
  });
  const due = sample(() => summarizeDue(database, SIGNER_LIMITS.summaryRows), SIGNER_LIMITS.summaryMs);
  const metrics = addSignerMetrics(registry, { owners: () => owners.size(), due });
  const wake = (organizationIds: readonly number[]): void => {
    // Goes to all processes, also to this one: one of them holds the owner. After a lost message the next poll finds
    // the work.
    if (organizationIds.length > 0 && bus.isUp()) bus.nc.publish(WEBHOOKS_DUE, JSON.stringify(organizationIds));
  };
  const tests = new TestSlots();
  const deps: SignerDeps = { bus, database, log, clock, keyring, sender, allowLoopback, metrics, wake, tests };
  const owners = startSending(deps);
  const woken = bus.nc.subscribe(WEBHOOKS_DUE, {
    callback: (error, message) => {
      if (error === null) owners.wake(message.json<number[]>());
    },
  });
  const events = followEvents({
    bus,
    log,
    take: async (published) => {
      const taken = await takeEvents(database, published);
      metrics.events.add({}, taken.events);
      metrics.deliveries.add({}, taken.deliveries);
      wake(taken.organizationIds);
    },
  });
  const serving = serveAll(deps);
  const { sweepIntervalMs, clockIntervalMs, ownerTurnMs } = SIGNER_LIMITS;
  const repeated = [
    // Not at once: events that were published while no signer ran arrive by the bus first.
    repeat(
      { everyMs: sweepIntervalMs, firstMs: sweepIntervalMs, what: "searching for lost events", log },
      createSweep(deps),
    ),
    startRetention(signerRetention(database, signer.WEBHOOK_RETENTION_DAYS), log),
    repeat({ everyMs: clockIntervalMs, what: "comparing clocks", log }, clock.compare),
    repeat({ everyMs: ownerTurnMs, what: "checking whether the machine has slept", log }, clock.compareIfMoved),
  ];
  return {
    async stop() {
      await Promise.all(serving.map((served) => served.drain()));
      woken.unsubscribe();
      await events.stop();
      await Promise.all([owners.stop(), ...repeated.map((work) => work.stop())]);
      await sender.close();
      await closeDatabase(database);
    },
  };
}

/** Compares the clocks, and seals with the current key what an older one has sealed. Closes the database when either fails. */
async function prepare(database: Database, keyring: Keyring, log: Log): Promise<Clock> {
  try {
    const clock = await startClock(database, log);
    const resealed = await resealSecrets(database, keyring);
    if (resealed > 0) log.info({ resealed }, "webhook secrets are sealed with the current key");
    return clock;
  } catch (error) {
    await closeDatabase(database);
    throw error;
  }
}

function startSending(deps: SignerDeps): Owners {
  const { bus, database, log, clock, sender, allowLoopback, metrics } = deps;
  return startOwners({
    // Each attempt is recorded, so sending waits while the disk is short: deliveries can wait.
    isPaused: () => isShort(diskOf(bus.nc), "reserve"),
    database,
    log,
    clock,
    sender,
    allowLoopback,
    random: Math.random,
    secretsOf: (endpointIds) => openSecrets(deps, endpointIds),
    onAttempt: ({ outcome, tookMs, lagMs }) => {
      metrics.attempts.add({ outcome });
      metrics.attemptSeconds.observe({ outcome }, tookMs / 1_000);
      metrics.startLagSeconds.observe({}, lagMs / 1_000);
    },
  });
}

/** Every operation that the signer answers, with its handler. */
function serveAll(deps: SignerDeps): readonly Serving[] {
  const { nc } = deps.bus;
  const responder = {
    nc,
    log: deps.log,
    queue: NAME,
    claim: requestClaims(deps.database),
    isSilent: databaseSilence(deps.database),
  };
  const on = serveWith(responder, deps);
  return [
    serve(responder, webhookSignerHealth, databaseHealth(nc, deps.database)),
    on(endpointMessages.listWebhookEndpoints, endpoints.listWebhookEndpoints),
    on(endpointMessages.getWebhookEndpoint, endpoints.getWebhookEndpoint),
    on(endpointMessages.registerWebhookEndpoint, endpoints.registerWebhookEndpoint),
    on(endpointMessages.changeWebhookEndpoint, endpoints.changeWebhookEndpoint),
    on(endpointMessages.rotateWebhookSecret, endpoints.rotateWebhookSecret),
    on(endpointMessages.deleteWebhookEndpoint, endpoints.deleteWebhookEndpoint),
    on(endpointMessages.testWebhookEndpoint, testWebhookEndpoint),
    on(deliveryMessages.listWebhookDeliveries, deliveries.listWebhookDeliveries),
    on(deliveryMessages.getWebhookDelivery, deliveries.getWebhookDelivery),
    on(deliveryMessages.listConsumerWebhookDeliveries, deliveries.listConsumerWebhookDeliveries),
    on(deliveryMessages.redeliverWebhook, deliveries.redeliverWebhook),
    on(deliveryMessages.resendWebhookDelivery, deliveries.resendWebhookDelivery),
  ];
}
