/** The registry: people, places and devices. PostgreSQL is its truth; the outbox publishes each change on the bus. */
import * as announceMessages from "../bus/messages/announce.ts";
import * as catalogueMessages from "../bus/messages/catalogue-items.ts";
import * as certificationMessages from "../bus/messages/certification-artifacts.ts";
import * as conformanceMessages from "../bus/messages/conformance-runs.ts";
import * as deviceMessages from "../bus/messages/devices.ts";
import * as codeMessages from "../bus/messages/enrollment-codes.ts";
import * as eventMessages from "../bus/messages/events.ts";
import * as filialMessages from "../bus/messages/filials.ts";
import { registryHealth } from "../bus/messages/health.ts";
import * as switchMessages from "../bus/messages/kill-switches.ts";
import * as linkMessages from "../bus/messages/login-links.ts";
import * as organizationMessages from "../bus/messages/organizations.ts";
import * as sandboxMessages from "../bus/messages/sandbox-organization.ts";
import * as sandboxesMessages from "../bus/messages/sandboxes.ts";
import * as sessionMessages from "../bus/messages/sessions.ts";
import * as stationMessages from "../bus/messages/stations.ts";
import * as userMessages from "../bus/messages/users.ts";
import { type Serving, serve, serveWith } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { databaseSilence } from "../db/silence.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { parseSettings, requireDatabaseUrl } from "../runtime/settings.ts";
import { createSigningKey } from "../runtime/signing-key.ts";
import * as catalogueItems from "./catalogue-items.ts";
import * as certificationArtifacts from "./certification-artifacts.ts";
import * as certificationLog from "./certification-log.ts";
import { requireSharedCodeKey } from "./code-key.ts";
import { ConformanceRunner } from "./conformance-runner.ts";
import * as conformanceRuns from "./conformance-runs.ts";
import { createDatabaseShares } from "./database-shares.ts";
import type { RegistryDeps } from "./deps.ts";
import * as devices from "./devices.ts";
import * as codes from "./enrollment-codes.ts";
import { listEvents } from "./events.ts";
import * as filials from "./filials.ts";
import * as switches from "./kill-switches.ts";
import { REGISTRY_LIMITS } from "./limits.ts";
import * as loginLinks from "./login-links.ts";
import { createLoginThrottle } from "./login-throttle.ts";
import { addRegistryMetrics, counted } from "./metrics.ts";
import * as organizations from "./organizations.ts";
import { createPasswords } from "./passwords.ts";
import { registryRetention } from "./retention.ts";
import { seedSandbox } from "./sandbox-organization.ts";
import * as sandboxes from "./sandboxes.ts";
import * as sessions from "./sessions.ts";
import { registrySettingsSchema } from "./settings.ts";
import * as stations from "./stations.ts";
import * as users from "./users.ts";

const NAME = "registry";

/**
 * Starts the registry. Several processes may run it: they share the requests, and PostgreSQL orders their changes. Throws
 * UserError for a key that differs from theirs.
 */
export async function startRegistryService({
  bus,
  log,
  settings,
  environment,
  metrics,
  connections,
}: ServiceDeps): Promise<Service> {
  const sql = openDatabase({
    url: requireDatabaseUrl(settings),
    name: NAME,
    maxConnections: connections,
  });
  const parsed = parseSettings(registrySettingsSchema, environment);
  const { CERTIFICATION_SIGNING_KEY: signingKey } = parsed;
  try {
    await requireSharedCodeKey(sql, parsed.ENROLLMENT_CODE_KEY);
  } catch (error) {
    await closeDatabase(sql);
    throw error;
  }
  const conformance = new ConformanceRunner({ sql, log, settings: parsed }, environment);
  const deps: RegistryDeps = {
    nc: bus.nc,
    jsm: bus.jsm,
    sql,
    shares: createDatabaseShares(connections),
    log,
    settings: parsed,
    conformance,
    certificationKey: signingKey && createSigningKey(signingKey),
    passwords: createPasswords(),
    loginThrottle: createLoginThrottle(sql),
    metrics: addRegistryMetrics(metrics),
  };
  const serving = serveAll(deps);
  const retention = startRetention(registryRetention(sql), log);
  return {
    stop: async () => {
      await Promise.all([...serving.map((served) => served.drain()), retention.stop(), conformance.stop()]);
      await closeDatabase(sql);
    },
  };
}

/** Every operation that the registry answers, with its handler. */
function serveAll(deps: RegistryDeps): readonly Serving[] {
  const { nc, log, sql } = deps;
  const responder = { nc, log, queue: NAME, claim: requestClaims(sql), isSilent: databaseSilence(sql) };
  const on = serveWith(responder, deps);
  const { anonymousRequestsInFlight: requestsInFlight } = REGISTRY_LIMITS;
  const onAnonymous = serveWith({ ...responder, handlerClaims: true, requestsInFlight }, deps);
  return [
    serve(responder, registryHealth, databaseHealth(nc, sql)),
    onAnonymous(sessionMessages.logIn, (using, request, claimNow) =>
      counted(using.metrics.logins, sessions.logIn(using, request, claimNow)),
    ),
    on(linkMessages.createLoginLink, loginLinks.createLoginLink),
    on(linkMessages.logInByLink, loginLinks.logInByLink),
    on(sessionMessages.logOut, sessions.logOut),
    on(sessionMessages.changePassword, sessions.changePassword),
    on(sessionMessages.bindStation, sessions.bindStation),
    on(userMessages.listUsers, users.listUsers),
    on(userMessages.createUser, users.createUser),
    on(userMessages.changeUser, users.changeUser),
    on(userMessages.moveUser, users.moveUser),
    on(userMessages.resetUserPassword, users.resetUserPassword),
    on(organizationMessages.createOrganization, organizations.createOrganization),
    on(organizationMessages.resetOwnerPassword, organizations.resetOwnerPassword),
    on(organizationMessages.listOrganizations, organizations.listOrganizations),
    on(organizationMessages.getOrganization, organizations.getOrganization),
    on(filialMessages.listFilials, filials.listFilials),
    on(filialMessages.createFilial, filials.createFilial),
    on(filialMessages.getFilial, filials.getFilial),
    on(filialMessages.renameFilial, filials.renameFilial),
    on(catalogueMessages.listCatalogueItems, catalogueItems.listCatalogueItems),
    on(catalogueMessages.listStationItems, catalogueItems.listStationItems),
    on(catalogueMessages.createCatalogueItem, catalogueItems.createCatalogueItem),
    on(catalogueMessages.getCatalogueItem, catalogueItems.getCatalogueItem),
    on(catalogueMessages.changeCatalogueItem, catalogueItems.changeCatalogueItem),
    on(catalogueMessages.deleteCatalogueItem, catalogueItems.deleteCatalogueItem),
    on(stationMessages.listStations, stations.listStations),
    on(stationMessages.getStation, stations.getStation),
    on(stationMessages.createStation, stations.createStation),
    on(stationMessages.renameStation, stations.renameStation),
    on(stationMessages.moveStation, stations.moveStation),
    on(deviceMessages.listDevices, devices.listDevices),
    on(deviceMessages.getDevice, devices.getDevice),
    on(deviceMessages.registerDevice, devices.registerDevice),
    on(deviceMessages.changeDevice, devices.changeDevice),
    on(deviceMessages.moveDevice, devices.moveDevice),
    on(codeMessages.issueEnrollmentCode, codes.issueEnrollmentCode),
    on(codeMessages.listEnrollmentCodes, codes.listEnrollmentCodes),
    on(codeMessages.revokeEnrollmentCode, codes.revokeEnrollmentCode),
    onAnonymous(codeMessages.enrollDevice, (using, request, claimNow) =>
      counted(using.metrics.enrollments, codes.enrollDevice(using, request, claimNow)),
    ),
    on(switchMessages.setKillSwitch, switches.setKillSwitch),
    on(switchMessages.setPlatformKillSwitch, switches.setPlatformKillSwitch),
    on(switchMessages.listKillSwitches, switches.listKillSwitches),
    on(switchMessages.getKillSwitch, switches.getKillSwitch),
    on(eventMessages.listEvents, listEvents),
    on(sandboxMessages.seedSandbox, seedSandbox),
    on(sandboxesMessages.listSandboxes, sandboxes.listSandboxes),
    on(sandboxesMessages.getSandbox, sandboxes.getSandbox),
    on(sandboxesMessages.seedSandboxStation, sandboxes.seedSandboxStation),
    on(sandboxesMessages.resetSandbox, sandboxes.resetSandbox),
    on(sandboxesMessages.deleteSandbox, sandboxes.deleteSandbox),
    on(conformanceMessages.startConformanceRun, conformanceRuns.startConformanceRun),
    on(conformanceMessages.listConformanceRuns, conformanceRuns.listConformanceRuns),
    on(conformanceMessages.getConformanceRun, conformanceRuns.getConformanceRun),
    on(conformanceMessages.endConformanceRun, conformanceRuns.endConformanceRun),
    on(certificationMessages.recordCertification, certificationArtifacts.recordCertification),
    on(certificationMessages.listCertificationArtifacts, certificationArtifacts.listCertificationArtifacts),
    on(certificationMessages.getCertificationArtifact, certificationArtifacts.getCertificationArtifact),
    on(certificationMessages.downloadCertificationArtifact, certificationArtifacts.downloadCertificationArtifact),
    on(certificationMessages.revokeCertificationArtifact, certificationArtifacts.revokeCertificationArtifact),
    on(certificationMessages.getCertificationLog, certificationLog.getCertificationLog),
    on(certificationMessages.getCertificationConsistency, certificationLog.getCertificationConsistency),
    on(announceMessages.announceStations, stations.announceStations),
    on(announceMessages.announceCredentials, codes.announceCredentials),
    on(announceMessages.announceSessions, sessions.announceSessions),
    on(announceMessages.announceSwitches, switches.announceSwitches),
  ];
}
