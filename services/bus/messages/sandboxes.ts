/**
 * Sandboxes: a test station with a display, a companion and a cashier. It uses the filial's test config of a provider
 * (contract, "Rules" 9). All operations need `organization.manage`. Another organization's id is `not_found`, and a deleted
 * sandbox too, except for its deletion.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { barrierSchema, callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";
import { currencySchema } from "./currency.ts";
import { deviceSchema } from "./devices.ts";
import { nameSchema as name } from "./name.ts";
import { stationSchema } from "./stations.ts";
import { userSchema } from "./users.ts";

const id = z.int().positive();

export const sandboxSchema = z.object({
  sandboxId: id,
  station: stationSchema,
  display: deviceSchema,
  companion: deviceSchema,
  cashier: userSchema,
  configId: id,
  createdAtMs: z.number(),
  /** Null before the first reset. */
  resetAtMs: z.number().nullable(),
});
export type Sandbox = z.infer<typeof sandboxSchema>;

/**
 * A sandbox with the secrets that only this reply has: the codes of its pending devices, and the cashier's new
 * password.
 */
const freshSandbox = z.object({
  sandbox: sandboxSchema,
  displayCode: z.string(),
  companionCode: z.string(),
  codesExpireAtMs: z.number(),
  cashierPassword: z.string(),
  barrier: barrierSchema,
});

export const listSandboxes = repeatable(
  "registry.listSandboxes",
  z.object({ caller, ...pageAfter }),
  z.object({ sandboxes: z.array(sandboxSchema), hasMore: z.boolean() }),
);
export const getSandbox = repeatable(
  "registry.getSandbox",
  z.object({ caller, sandboxId: id }),
  z.object({ sandbox: sandboxSchema }),
);
/** `configId` is the filial's active test config. Refuses with `invalid_request`, or `conflict` at the limit of sandboxes. */
export const seedSandboxStation = once(
  "registry.seedSandboxStation",
  z.object({
    caller,
    filialId: id,
    configId: id,
    /** Whether the config was created for this sandbox. */
    ownsConfig: z.boolean(),
    name,
    currency: currencySchema,
    creation: creation.optional(),
  }),
  freshSandbox,
);
/**
 * Revokes all credentials and codes, and ends all sessions. Afterwards the station and the cashier are active, and the
 * devices are pending. With `keepsSettings`, the next reset restores the settings that the devices have after this one.
 */
export const resetSandbox = once(
  "registry.resetSandbox",
  z.object({ caller, sandboxId: id, keepsSettings: z.boolean().optional() }),
  freshSandbox,
);
/**
 * Closes the station, revokes the devices and suspends the cashier. Returns the config that was created for sandboxes
 * and that no sandbox uses any more. A repetition gets the same answer. A registry of an earlier version sends no
 * `deletedAtMs`.
 */
export const deleteSandbox = repeatable(
  "registry.deleteSandbox",
  z.object({ caller, sandboxId: id }),
  z.object({ unusedConfigId: id.nullable(), deletedAtMs: z.number().optional(), barrier: barrierSchema }),
);
