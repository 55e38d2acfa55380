/** The sandbox: an organization with stations, devices and people, for trying the service. */
import { z } from "zod";
import { DEVICE_KINDS } from "../../../machines/station/state.ts";
import { repeatable } from "../operation.ts";
import { newPasswordSchema } from "./users.ts";

const id = z.int().positive();

/**
 * Creates the missing parts of the sandbox: organization, filial, two stations with a companion and a display each, an
 * owner, a cashier, and with `operatorPassword` a reconciliation operator. Sets the passwords. Only the operator of the
 * installation calls this, on the bus.
 */
export const seedSandbox = repeatable(
  "registry.seedSandbox",
  z.object({
    ownerPassword: newPasswordSchema,
    cashierPassword: newPasswordSchema,
    /** Without it the service creates no reconciliation operator, and does not change an existing one. */
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
            /** A new code when the device is pending, else null. */
            enrollmentCode: z.string().nullable(),
          }),
        ),
      }),
    ),
  }),
);
