/** The webhook signer: events become deliveries, deliveries become signed requests, and what came of each stays on record. */

import { diskOf } from "../bus/disk-gate.ts";
import { webhookSignerHealth } from "../bus/messages/health.ts";
import {
  getWebhookDelivery,
  listConsumerWebhookDeliveries,
  listWebhookDeliveries,
  redeliverWebhook,
} from "../bus/messages/webhook-deliveries.ts";
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  getWebhookEndpoint,
  listWebhookEndpoints,
  registerWebhookEndpoint,
  rotateWebhookSecret,
  testWebhookEndpoint,
} from "../bus/messages/webhook-endpoints.ts";
import { serve } from "../bus/operation.ts";
import { WEBHOOKS_DUE } from "../bus/subjects.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { isShort } from "../runtime/disk-watch.ts";
import { createKeyring } from "../runtime/keyring.ts";
import { repeat } from "../runtime/repeat.ts";
import { sample } from "../runtime/sample.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import { type Clock, startClock } from "./clock.ts";
import { getOwn, list, listOwn } from "./deliveries/read-deliveries.ts";
import { redeliver } from "./deliveries/redeliver.ts";
import type { SignerDeps } from "./deps.ts";
import * as changing from "./endpoints/change-endpoint.ts";
import { get, listEndpoints } from "./endpoints/read-endpoints.ts";
import { register } from "./endpoints/register-endpoint.ts";
import { test } from "./endpoints/test-endpoint.ts";
import { TestPlaces } from "./endpoints/test-places.ts";
import { addSignerFigures } from "./figures.ts";
import { removeOldRows } from "./housekeeping.ts";
import { createSender } from "./http/sender.ts";
import { followEvents } from "./intake/follow-events.ts";
import { createSweep } from "./intake/sweep.ts";
import { takeEvents } from "./intake/take-events.ts";
import { SIGNER_LIMITS } from "./limits.ts";
import { openSecrets } from "./secrets/endpoint-secrets.ts";
import { resealSecrets } from "./secrets/reseal.ts";
import { startOwners } from "./sending/owners.ts";
import { readSignerSettings } from "./settings.ts";
import { summarizeDue } from "./sql/housekeeping.ts";

const NAME = "webhook-signer";

/** Starts taking events and sending; several processes share both. Throws UserError for a key that is missing or wrong. */
export async function startWebhookSignerService({
  bus,
  log,
  settings,
  environment,
  metrics,
  connections = SIGNER_LIMITS.databaseConnections,
}: ServiceDeps): Promise<Service> {
  const own = readSignerSettings(environment);
  const keyring = createKeyring(own.WEBHOOK_SECRETS_KEY, own.WEBHOOK_SECRETS_OLD_KEYS);
  const allowLoopback = own.WEBHOOK_ALLOW_LOOPBACK;
  if (allowLoopback) {
    log.warn(
      "WEBHOOK_ALLOW_LOOPBACK is on: webhooks of test consumers may go to this machine itself. For development only.",
    );
  }
  const database = openDatabase({
    url: requireDatabaseUrl(settings),
    name: NAME,
    maxConnections: connections,
  });
  let clock: Clock;
  try {
    clock = await startClock(database, log);
    const resealed = await resealSecrets(database, keyring);
    if (resealed > 0) log.info({ resealed }, "webhook secrets are sealed with the current key");
  } catch (error) {
    await closeDatabase(database);
    throw error;
  }
  const sender = createSender({
    dnsServers: own.WEBHOOK_DNS_SERVERS,
    caFile: own.WEBHOOK_CA_FILE,
    ownNetworks: own.WEBHOOK_OWN_NETWORKS,
    nowMs: clock.nowMs,
  });
  const due = sample(() => summarizeDue(database, SIGNER_LIMITS.summaryRows), SIGNER_LIMITS.summaryMs);
  const figures = addSignerFigures(metrics, { owners: () => owners.size(), due });
  const wake = (organizationIds: readonly number[]): void => {
    // To all processes, this one included: one of them holds the owner. A word that is lost is made up for by the next look.
    if (organizationIds.length > 0 && bus.isUp()) bus.nc.publish(WEBHOOKS_DUE, JSON.stringify(organizationIds));
  };
  const retentionDays = own.WEBHOOK_RETENTION_DAYS;
  const tests = new TestPlaces();
  const deps: SignerDeps = {
    bus,
    database,
    log,
    clock,
    keyring,
    sender,
    allowLoopback,
    retentionDays,
    figures,
    wake,
    tests,
  };
  const owners = startOwners({
    // Each attempt is written down, so deliveries wait while the disk is short: they are due longer than others.
    isPaused: () => isShort(diskOf(bus.nc), "reserve"),
    database,
    log,
    clock,
    sender,
    allowLoopback,
    random: Math.random,
    secretsOf: (endpointIds) => openSecrets(deps, endpointIds),
    onAttempt: ({ outcome, tookMs, lagMs }) => {
      figures.attempts.add({ outcome });
      figures.attemptSeconds.observe({ outcome }, tookMs / 1_000);
      figures.startLagSeconds.observe({}, lagMs / 1_000);
    },
  });
  const woken = bus.nc.subscribe(WEBHOOKS_DUE, {
    callback: (error, message) => {
      if (error === null) owners.wake(message.json<number[]>());
    },
  });
  const events = await followEvents({
    bus,
    log,
    take: async (published) => {
      const taken = await takeEvents(database, published);
      figures.events.add({}, taken.events);
      figures.deliveries.add({}, taken.deliveries);
      wake(taken.organizationIds);
    },
  });
  const serving = serveAll(deps);
  const { sweepIntervalMs, housekeepingIntervalMs, clockIntervalMs, ownerTurnMs } = SIGNER_LIMITS;
  const repeated = [
    repeat({ everyMs: sweepIntervalMs, what: "looking for lost events", log }, createSweep(deps)),
    repeat({ everyMs: housekeepingIntervalMs, what: "removing old deliveries", log }, () => removeOldRows(deps)),
    repeat({ everyMs: clockIntervalMs, what: "comparing clocks", log }, clock.look),
    repeat({ everyMs: ownerTurnMs, what: "looking whether the machine has slept", log }, clock.lookIfMoved),
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

function serveAll(deps: SignerDeps): ReturnType<typeof serve>[] {
  const responder = { nc: deps.bus.nc, log: deps.log, queue: NAME, claim: requestClaims(deps.database) };
  return [
    serve(responder, webhookSignerHealth, databaseHealth(deps.bus.nc, deps.database)),
    serve(responder, listWebhookEndpoints, (request) => listEndpoints(deps, request)),
    serve(responder, getWebhookEndpoint, (request) => get(deps, request)),
    serve(responder, registerWebhookEndpoint, (request) => register(deps, request)),
    serve(responder, changeWebhookEndpoint, (request) => changing.change(deps, request)),
    serve(responder, rotateWebhookSecret, (request) => changing.rotate(deps, request)),
    serve(responder, deleteWebhookEndpoint, (request) => changing.remove(deps, request)),
    serve(responder, testWebhookEndpoint, (request) => test(deps, request)),
    serve(responder, listWebhookDeliveries, (request) => listOwn(deps, request)),
    serve(responder, getWebhookDelivery, (request) => getOwn(deps, request)),
    serve(responder, listConsumerWebhookDeliveries, (request) => list(deps, request)),
    serve(responder, redeliverWebhook, (request) => redeliver(deps, request)),
  ];
}
