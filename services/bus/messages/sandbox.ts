/** The sandbox: an organization with stations, devices and people, for trying the service. */
import { z } from "zod";
import { DEVICE_KINDS } from "../../../machines/station/state.ts";
import { repeatable } from "../operation.ts";
import { newPasswordSchema } from "./users.ts";

const id = z.int().positive();

/**
 * Makes what is missing of the sandbox: organization, filial, two stations with a companion and a display each, an owner, a
 * cashier, and a reconciliation operator where a password for one is given. Sets the given passwords. For the operator of
 * the installation, on the bus only.
 */
export const seedSandbox = repeatable(
  "registry.seedSandbox",
  z.object({
    ownerPassword: newPasswordSchema,
    cashierPassword: newPasswordSchema,
    /** Without it no reconciliation operator is made, and an existing one stays as it is. */
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
            /** A fresh code when the device is pending, else null. */
            enrollmentCode: z.string().nullable(),
          }),
        ),
      }),
    ),
  }),
);
