/** Every operation that the registry answers, with its handler. */
import type { z } from "zod";
import { announceCredentials, announceSessions, announceStations, announceSwitches } from "../bus/messages/announce.ts";
import * as deviceMessages from "../bus/messages/devices.ts";
import * as codeMessages from "../bus/messages/enrollment-codes.ts";
import { listEvents } from "../bus/messages/events.ts";
import * as filialMessages from "../bus/messages/filials.ts";
import * as killSwitches from "../bus/messages/kill-switches.ts";
import * as organizationMessages from "../bus/messages/organizations.ts";
import { seedSandbox } from "../bus/messages/sandbox.ts";
import * as sessionMessages from "../bus/messages/sessions.ts";
import * as stationMessages from "../bus/messages/stations.ts";
import * as userMessages from "../bus/messages/users.ts";
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

  on(sessionMessages.logIn, (using, request) => counted(using.figures.logins, handleLogin(using, request)));
  on(sessionMessages.logOut, handleLogout);
  on(sessionMessages.bindStation, handleBindStation);
  on(codeMessages.enrollDevice, (using, request) => counted(using.figures.enrollments, handleEnroll(using, request)));
  on(filialMessages.listFilials, filials.handleListFilials);
  on(filialMessages.createFilial, filials.handleCreateFilial);
  on(filialMessages.getFilial, filials.handleGetFilial);
  on(filialMessages.renameFilial, filials.handleRenameFilial);
  on(stationMessages.listStations, stations.handleListStations);
  on(stationMessages.getStation, stations.handleGetStation);
  on(stationMessages.createStation, stations.handleCreateStation);
  on(stationMessages.renameStation, stations.handleRenameStation);
  on(stationMessages.moveStation, stations.handleMoveStation);
  on(deviceMessages.listDevices, devices.handleListDevices);
  on(deviceMessages.getDevice, devices.handleGetDevice);
  on(deviceMessages.registerDevice, devices.handleRegisterDevice);
  on(deviceMessages.changeDevice, devices.handleChangeDevice);
  on(deviceMessages.moveDevice, handleMoveDevice);
  on(codeMessages.issueEnrollmentCode, codes.handleIssueEnrollmentCode);
  on(codeMessages.listEnrollmentCodes, codes.handleListEnrollmentCodes);
  on(codeMessages.revokeEnrollmentCode, codes.handleRevokeEnrollmentCode);
  on(userMessages.listUsers, users.handleListUsers);
  on(userMessages.createUser, users.handleCreateUser);
  on(userMessages.changeUser, handleChangeUser);
  on(userMessages.moveUser, access.handleMoveUser);
  on(userMessages.resetUserPassword, access.handleResetPassword);
  on(sessionMessages.changePassword, handleChangePassword);
  on(listEvents, handleListRegistryEvents);
  on(killSwitches.setKillSwitch, switches.handleSetOwnSwitch);
  on(killSwitches.setPlatformKillSwitch, switches.handleSetPlatformSwitch);
  on(killSwitches.listKillSwitches, switches.handleListOwnSwitches);
  on(killSwitches.getKillSwitch, switches.handleGetPlatformSwitch);
  on(organizationMessages.createOrganization, organizations.handleCreateOrganization);
  on(organizationMessages.listOrganizations, organizations.handleListOrganizations);
  on(organizationMessages.getOrganization, organizations.handleGetOrganization);
  on(seedSandbox, handleSeedSandbox);
  on(announceStations, announcing.handleAnnounceStations);
  on(announceCredentials, announcing.handleAnnounceCredentials);
  on(announceSessions, announcing.handleAnnounceSessions);
  on(announceSwitches, announcing.handleAnnounceSwitches);

  return serving;
}
