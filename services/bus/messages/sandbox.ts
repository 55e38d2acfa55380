/** The sandbox: an organization with stations, devices and people, for trying the service. */
import { z } from "zod";
import { DEVICE_KINDS } from "../../../machines/station/state.ts";
import { defineOperation } from "../operation.ts";
import { newPasswordSchema } from "./users.ts";

const id = z.int().positive();

/**
 * Seeds the sandbox, idempotently: organization, filial, two stations with a companion and a display each, an owner, a
 * cashier, and a reconciliation operator when a password for one is given. Served on the bus only, for whoever operates the installation. Passwords and open codes are returned each
 * time the caller passes the ones to keep or they had to be made anew.
 */
export const seedSandbox = defineOperation(
  "registry.seedSandbox",
  "repeatable",
  z.object({
    ownerPassword: newPasswordSchema,
    cashierPassword: newPasswordSchema,
    /** Without it there is no reconciliation operator, or the one that there is stays as it is. */
    operatorPassword: newPasswordSchema.optional(),
  }),
  z.object({
    organizationId: id,
    filialId: id,
    owner: z.object({ email: z.string() }),
    cashier: z.object({ email: z.string() }),
    operator: z.object({ email: z.string() }),
    stations: z.array(
      z.object({
        stationId: id,
        name: z.string(),
        devices: z.array(
          z.object({
            deviceId: id,
            name: z.string(),
            kind: z.enum(DEVICE_KINDS),
            /** A fresh code when the device still has to enroll, else null. */
            enrollmentCode: z.string().nullable(),
          }),
        ),
      }),
    ),
  }),
);
