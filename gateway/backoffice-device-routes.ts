/** The rows of the owner's API about devices and their enrollment codes (design §5). `gateway/routes.ts` joins them into the one table. */
import {
  changeDeviceBodySchema,
  deviceDetailSchema,
  deviceSchema,
  devicesQuerySchema,
  devicesSchema,
  enrollmentCodeSchema,
  enrollmentCodesQuerySchema,
  enrollmentCodesSchema,
  issueCodeBodySchema,
  issuedCodeSchema,
  registerDeviceBodySchema,
} from "./contract/backoffice.ts";
import { changeOwnDevice, getOwnDevice, listOwnDevices, registerOwnDevice } from "./handlers/backoffice/devices.ts";
import { issueCode, listCodes, revokeCode } from "./handlers/backoffice/enrollment-codes.ts";
import { moveOwnDevice } from "./handlers/backoffice/move-device.ts";
import { type Route, route, session } from "./route.ts";

const root = "/api/backoffice/v1";
const device = `${root}/devices/{device_id}` as const;
const who = session("organization.manage");
const tag = "backoffice";

const deviceReply = { 200: { description: "The device after this.", schema: deviceSchema } };

export const backofficeDeviceRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: `${root}/devices/`,
    operationId: "backoffice_devices",
    tag,
    summary: "List the devices",
    description: "Revoked ones too, unless a status is named.",
    who,
    query: devicesQuerySchema,
    replies: { 200: { description: "By id.", schema: devicesSchema } },
    errors: ["not_found"],
    handler: listOwnDevices,
  }),
  route({
    method: "POST",
    path: `${root}/devices/`,
    operationId: "backoffice_device_register",
    tag,
    summary: "Register a device",
    description:
      "For good at exactly one station and of one kind. To work it must enroll: issue an enrollment code for it next.",
    who,
    body: registerDeviceBodySchema,
    replies: { 201: { description: "The device; it is `pending` until it claims a code.", schema: deviceSchema } },
    errors: ["not_found", "device_limit_reached", "conflict"],
    handler: registerOwnDevice,
  }),
  route({
    method: "GET",
    path: `${device}/`,
    operationId: "backoffice_device",
    tag,
    summary: "Read a device with its newest heartbeat",
    description: "The heartbeat carries what the device told of itself.",
    who,
    replies: { 200: { description: "The device.", schema: deviceDetailSchema } },
    errors: ["not_found"],
    handler: getOwnDevice,
  }),
  route({
    method: "PATCH",
    path: `${device}/`,
    operationId: "backoffice_device_change",
    tag,
    summary: "Change a device",
    description:
      "Only the fields that are sent change, with the device's next poll; a collection under way keeps its `handoff_target`. A revoked device cannot be changed.",
    who,
    body: changeDeviceBodySchema,
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    handler: changeOwnDevice,
  }),
  route({
    method: "POST",
    path: `${device}/suspend/`,
    operationId: "backoffice_device_suspend",
    tag,
    summary: "Suspend a device",
    description:
      "Until it is resumed. It keeps its credential and is told why it is refused; a collection under way can still be attested.",
    who,
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    handler: moveOwnDevice("SUSPEND"),
  }),
  route({
    method: "POST",
    path: `${device}/resume/`,
    operationId: "backoffice_device_resume",
    tag,
    summary: "Resume a device",
    description: "Undoes a suspension; the device goes on with the credential that it has.",
    who,
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    handler: moveOwnDevice("RESUME"),
  }),
  route({
    method: "POST",
    path: `${device}/reset/`,
    operationId: "backoffice_device_reset",
    tag,
    summary: "Reset a device",
    description:
      "Revokes its credential and codes, which cannot be undone; it is `pending` until it enrolls with a new code.",
    who,
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    handler: moveOwnDevice("RESET"),
  }),
  route({
    method: "POST",
    path: `${device}/revoke/`,
    operationId: "backoffice_device_revoke",
    tag,
    summary: "Revoke a device",
    description:
      "For good: its credential and codes end at once, and it cannot be reset or resumed. Register it anew to use it again.",
    who,
    replies: deviceReply,
    errors: ["not_found", "conflict"],
    handler: moveOwnDevice("REVOKE"),
  }),
  route({
    method: "GET",
    path: `${device}/enrollment-codes/`,
    operationId: "backoffice_enrollment_codes",
    tag,
    summary: "List a device's enrollment codes",
    description: "What became of each; without `before_id` the newest ones.",
    who,
    query: enrollmentCodesQuerySchema,
    replies: {
      200: { description: "Newest first; the codes themselves are never shown again.", schema: enrollmentCodesSchema },
    },
    errors: ["not_found"],
    handler: listCodes,
  }),
  route({
    method: "POST",
    path: `${device}/enrollment-codes/`,
    operationId: "backoffice_enrollment_code_issue",
    tag,
    summary: "Issue an enrollment code",
    description: "A newer code revokes the open one.",
    who,
    body: issueCodeBodySchema,
    bodyOptional: true,
    replies: { 201: { description: "The code, shown this once.", schema: issuedCodeSchema } },
    errors: ["not_found", "conflict"],
    handler: issueCode,
  }),
  route({
    method: "POST",
    path: `${root}/enrollment-codes/{code_id}/revoke/`,
    operationId: "backoffice_enrollment_code_revoke",
    tag,
    summary: "Revoke an enrollment code",
    description:
      "An open code can no longer be claimed, which cannot be undone; issue another one. A device that has claimed its code is kept out by a reset.",
    who,
    replies: { 200: { description: "The code after this.", schema: enrollmentCodeSchema } },
    errors: ["not_found", "conflict"],
    handler: revokeCode,
  }),
];
