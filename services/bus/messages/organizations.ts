/**
 * Organizations and their first owners. These operations have no caller: the gateway has checked the platform key, or
 * the operator calls them on the bus.
 */
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

/** Creates an organization with its first owner. `by` is the person who does it, for the audit log. */
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
    /**
     * The generated password of the owner, when the request has none. Only this reply has it; the service stores its
     * hash.
     */
    initialPassword: z.string().nullable(),
  }),
);
/**
 * Sets the password of an owner who cannot log in, and ends all sessions of the owner. `by` is the person who does it,
 * for the audit log. Refuses with `not_found` when the e-mail address does not belong to an owner.
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
