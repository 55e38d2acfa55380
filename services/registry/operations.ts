/** Every operation that the registry answers, with its handler. */
import type { z } from "zod";
import { announceCredentials, announceSessions, announceStations, announceSwitches } from "../bus/messages/announce.ts";
import * as killSwitches from "../bus/messages/kill-switches.ts";
import * as organizationMessages from "../bus/messages/organizations.ts";
import * as registry from "../bus/messages/registry.ts";
import * as userAccess from "../bus/messages/user-access.ts";
import { type Operation, type Serving, serve } from "../bus/operation.ts";
import { requestClaims } from "../db/request-claims.ts";
import type { RegistryDeps } from "./deps.ts";
import { counted } from "./figures.ts";
import * as announcing from "./handlers/announce.ts";
import { handleBindStation } from "./handlers/bind-station.ts";
import { handleChangePassword } from "./handlers/change-password.ts";
import { handleChangeUser } from "./handlers/change-user.ts";
import * as devices from "./handlers/devices.ts";
import { handleEnroll } from "./handlers/enroll.ts";
import * as codes from "./handlers/enrollment-codes.ts";
import * as filials from "./handlers/filials.ts";
import * as switches from "./handlers/kill-switches.ts";
import { handleLogin, handleLogout } from "./handlers/login.ts";
import { handleMoveDevice } from "./handlers/move-device.ts";
import * as organizations from "./handlers/organizations.ts";
import { handleListRegistryEvents } from "./handlers/registry-events.ts";
import { handleSeedSandbox } from "./handlers/seed-sandbox.ts";
import * as stations from "./handlers/stations.ts";
import * as access from "./handlers/user-access.ts";
import * as users from "./handlers/users.ts";

/** Answers all of them; processes that run this side by side share the requests. */
export function serveRegistry(deps: RegistryDeps): readonly Serving[] {
  const serving: Serving[] = [];
  const responder = { nc: deps.nc, log: deps.log, queue: "registry", claim: requestClaims(deps.sql) };
  const on = <TRequest extends z.ZodType, TReply extends z.ZodType>(
    operation: Operation<TRequest, TReply>,
    handle: (deps: RegistryDeps, request: z.infer<TRequest>) => Promise<z.infer<TReply>>,
  ): void => {
    serving.push(serve(responder, operation, (request) => handle(deps, request)));
  };

  on(registry.login, (using, request) => counted(using.figures.logins, handleLogin(using, request)));
  on(registry.logout, handleLogout);
  on(userAccess.bindStation, handleBindStation);
  on(registry.enroll, (using, request) => counted(using.figures.enrollments, handleEnroll(using, request)));
  on(registry.listFilials, filials.handleListFilials);
  on(registry.createFilial, filials.handleCreateFilial);
  on(registry.getFilial, filials.handleGetFilial);
  on(registry.renameFilial, filials.handleRenameFilial);
  on(registry.listStations, stations.handleListStations);
  on(registry.getStation, stations.handleGetStation);
  on(registry.createStation, stations.handleCreateStation);
  on(registry.renameStation, stations.handleRenameStation);
  on(registry.moveStation, stations.handleMoveStation);
  on(registry.listDevices, devices.handleListDevices);
  on(registry.getDevice, devices.handleGetDevice);
  on(registry.registerDevice, devices.handleRegisterDevice);
  on(registry.changeDevice, devices.handleChangeDevice);
  on(registry.moveDevice, handleMoveDevice);
  on(registry.issueEnrollmentCode, codes.handleIssueEnrollmentCode);
  on(registry.listEnrollmentCodes, codes.handleListEnrollmentCodes);
  on(registry.revokeEnrollmentCode, codes.handleRevokeEnrollmentCode);
  on(registry.listUsers, users.handleListUsers);
  on(registry.createUser, users.handleCreateUser);
  on(userAccess.changeUser, handleChangeUser);
  on(userAccess.moveUser, access.handleMoveUser);
  on(userAccess.resetPassword, access.handleResetPassword);
  on(userAccess.changePassword, handleChangePassword);
  on(registry.listRegistryEvents, handleListRegistryEvents);
  on(killSwitches.setOwnSwitch, switches.handleSetOwnSwitch);
  on(killSwitches.setPlatformSwitch, switches.handleSetPlatformSwitch);
  on(killSwitches.listOwnSwitches, switches.handleListOwnSwitches);
  on(killSwitches.getPlatformSwitch, switches.handleGetPlatformSwitch);
  on(organizationMessages.createOrganization, organizations.handleCreateOrganization);
  on(organizationMessages.listOrganizations, organizations.handleListOrganizations);
  on(organizationMessages.getOrganization, organizations.handleGetOrganization);
  on(registry.seedSandbox, handleSeedSandbox);
  on(announceStations, announcing.handleAnnounceStations);
  on(announceCredentials, announcing.handleAnnounceCredentials);
  on(announceSessions, announcing.handleAnnounceSessions);
  on(announceSwitches, announcing.handleAnnounceSwitches);

  return serving;
}
