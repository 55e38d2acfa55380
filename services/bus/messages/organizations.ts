/** Organizations and their first owners. There is no caller: the gateway checks the platform key, or the operator is on the bus. */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { barrierSchema } from "./caller.ts";
import { nameSchema as name } from "./name.ts";
import { emailSchema, newPasswordSchema, userSchema } from "./users.ts";

const id = z.int().positive();

export const organizationSchema = z.object({
  organizationId: id,
  name: z.string(),
  sandbox: z.boolean(),
  createdAtMs: z.number(),
});
export type Organization = z.infer<typeof organizationSchema>;

/** A new organization with its first owner; `by` is who makes it, for the audit log. */
export const createOrganization = once(
  "registry.createOrganization",
  z.object({
    name,
    owner: z.object({ email: emailSchema, name, password: newPasswordSchema.optional() }),
    by: name.optional(),
  }),
  z.object({
    organization: organizationSchema,
    owner: userSchema,
    /** The owner's password when none was given: returned this once, stored hashed. */
    initialPassword: z.string().nullable(),
  }),
);
/**
 * For an owner who cannot log in. Ends all of their sessions; `by` is who does it, for the audit log. An e-mail address that
 * is no owner's is `not_found`.
 */
export const resetOwnerPassword = once(
  "registry.resetOwnerPassword",
  z.object({ email: emailSchema, password: newPasswordSchema.optional(), by: name.optional() }),
  z.object({ owner: userSchema, initialPassword: z.string().nullable(), barrier: barrierSchema }),
);
export const listOrganizations = repeatable(
  "registry.listOrganizations",
  z.object(pageAfter),
  z.object({ organizations: z.array(organizationSchema), hasMore: z.boolean() }),
);
export const getOrganization = repeatable(
  "registry.getOrganization",
  z.object({ organizationId: id }),
  z.object({ organization: organizationSchema }),
);
