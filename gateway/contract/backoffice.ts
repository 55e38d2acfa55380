/** The owner's API on the wire: places, people and devices (design §5). The audit trail is in `timeline.ts`. */
import { z } from "zod";
import { CAPABILITIES } from "../../machines/station/state.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import {
  blockedReasonSchema,
  capabilitySchema,
  deviceKindSchema,
  deviceStatusSchema,
  stationStatusSchema,
} from "../http/enums.ts";
import { hasMoreAfter, hasMoreBefore, pageAfterQuery, pageBeforeQuery, queryId } from "../http/page.ts";
import {
  CAPABILITIES_DESCRIPTION,
  currencySchema,
  idSchema,
  livenessSchema,
  nameSchema,
  timestampSchema,
} from "../http/shared-schemas.ts";

const filterId = queryId().optional();

export const filialSchema = z
  .object({ filial_id: idSchema, name: z.string(), created_at: timestampSchema })
  .meta({ id: "Filial" });
export const filialsSchema = z.object({ filials: z.array(filialSchema), has_more: hasMoreAfter });
export const filialsQuerySchema = z.strictObject(pageAfterQuery);
export const createFilialBodySchema = z
  .strictObject({ name: nameSchema })
  .meta({ id: "CreateFilial", examples: [{ name: "Old Town" }] });

export const renameFilialBodySchema = z
  .strictObject({ name: nameSchema })
  .meta({ id: "RenameFilial", examples: [{ name: "Harbour" }] });

export const stationSchema = z
  .object({
    station_id: idSchema,
    filial_id: idSchema,
    name: z.string(),
    currency: currencySchema,
    status: stationStatusSchema,
    sandbox: z.boolean().meta({
      description:
        "Whether it is of the sandbox organization, for trying things out: its QR provider is one of mode `test`, never `live`, and every other station takes one of mode `live`.",
    }),
    created_at: timestampSchema,
  })
  .meta({
    id: "Station",
    examples: [
      {
        station_id: 1,
        filial_id: 1,
        name: "Counter 1",
        currency: "EUR",
        status: "suspended",
        sandbox: false,
        created_at: "2026-11-20T12:00:00.000Z",
      },
    ],
  });
export const stationsSchema = z.object({ stations: z.array(stationSchema), has_more: hasMoreAfter });
export const stationsQuerySchema = z.strictObject({ filial_id: filterId, ...pageAfterQuery });
export const createStationBodySchema = z
  .strictObject({ filial_id: idSchema, name: nameSchema, currency: currencySchema })
  .meta({ id: "CreateStation", examples: [{ filial_id: 1, name: "Counter 1", currency: "EUR" }] });
export const renameStationBodySchema = z
  .strictObject({ name: nameSchema })
  .meta({ id: "RenameStation", examples: [{ name: "Counter 2" }] });

const deviceShape = {
  device_id: idSchema,
  station_id: idSchema,
  name: z.string(),
  kind: deviceKindSchema,
  capabilities: z.array(capabilitySchema).meta({ description: CAPABILITIES_DESCRIPTION }),
  status: deviceStatusSchema,
  handoff_target: z.string().meta({ description: "Opaque; handed to the companion as it is." }),
  created_at: timestampSchema,
  enrolled_at: timestampSchema.nullable().meta({ description: "When it last claimed a code." }),
  blocked_reason: blockedReasonSchema,
  liveness: livenessSchema.nullable().meta({ description: "Null when the station does not have the device." }),
};
export const deviceSchema = z.object(deviceShape).meta({
  id: "Device",
  examples: [
    {
      device_id: 42,
      station_id: 1,
      name: "Counter tablet",
      kind: "customer_display",
      capabilities: ["display_total"],
      status: "suspended",
      handoff_target: "",
      created_at: "2026-11-20T12:00:00.000Z",
      enrolled_at: "2026-11-20T12:05:00.000Z",
      blocked_reason: "device_suspended",
      liveness: null,
    },
  ],
});
export const devicesSchema = z.object({ devices: z.array(deviceSchema), has_more: hasMoreAfter });
/** One device with its newest heartbeat. */
export const deviceDetailSchema = z
  .object({
    ...deviceShape,
    last_heartbeat: z
      .object({ at: timestampSchema, summary: z.record(z.string(), z.unknown()) })
      .nullable()
      .meta({ description: "Null when the device was never heard." }),
  })
  .meta({ id: "DeviceDetail" });
export const devicesQuerySchema = z.strictObject({
  station_id: filterId,
  status: deviceStatusSchema.optional().meta({ description: "Only devices of this status; all when left out." }),
  ...pageAfterQuery,
});

const capabilitiesSchema = z
  .array(capabilitySchema)
  .max(CAPABILITIES.length)
  .meta({ description: `${CAPABILITIES_DESCRIPTION} Those of the kind when left out.` });
const handoffTargetSchema = z
  .string()
  .max(BOUNDS.handoffTargetCharacters)
  .meta({ description: "The launch reference of the payment application on the same device; may be blank." });
export const registerDeviceBodySchema = z
  .strictObject({
    station_id: idSchema,
    name: nameSchema,
    kind: deviceKindSchema,
    capabilities: capabilitiesSchema.optional(),
    handoff_target: handoffTargetSchema.optional(),
  })
  .meta({
    id: "RegisterDevice",
    examples: [{ station_id: 1, name: "Counter tablet", kind: "smart_pos_companion", handoff_target: "pay://collect" }],
  });
export const changeDeviceBodySchema = z
  .strictObject({
    name: nameSchema.optional(),
    capabilities: capabilitiesSchema.optional(),
    handoff_target: handoffTargetSchema.optional(),
  })
  .meta({ id: "ChangeDevice", examples: [{ name: "Counter tablet 2", handoff_target: "pay://collect" }] });

export const enrollmentCodeSchema = z
  .object({
    code_id: idSchema,
    device_id: idSchema,
    status: z.enum(["open", "spent", "expired", "revoked"]).meta({ id: "EnrollmentCodeStatus" }),
    expires_at: timestampSchema,
    created_at: timestampSchema,
  })
  .meta({ id: "EnrollmentCode" });
export const enrollmentCodesSchema = z.object({
  enrollment_codes: z.array(enrollmentCodeSchema),
  has_more: hasMoreBefore,
});
export const enrollmentCodesQuerySchema = z.strictObject(pageBeforeQuery);
export const issueCodeBodySchema = z
  .strictObject({
    lifetime_seconds: z
      .int()
      .min(BOUNDS.enrollmentCodeLifetimeMs.min / 1_000)
      .max(BOUNDS.enrollmentCodeLifetimeMs.max / 1_000)
      .optional()
      .meta({ description: "A minute to a week; 15 minutes when left out." }),
  })
  .meta({ id: "IssueEnrollmentCode", examples: [{ lifetime_seconds: 900 }] });
/** The code itself is shown this once. */
export const issuedCodeSchema = z
  .object({
    code: z.string().meta({ examples: ["7K3QX-9M2TB"] }),
    enrollment_code: enrollmentCodeSchema,
  })
  .meta({ id: "IssuedEnrollmentCode" });
