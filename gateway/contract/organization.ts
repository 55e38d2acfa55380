/** Organizations on the wire, for the operator (design §5). */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { hasMoreAfter, pageAfterQuery } from "../http/page.ts";
import { idSchema, nameSchema, newPasswordSchema, timestampSchema } from "../http/shared-schemas.ts";
import { userSchema } from "./backoffice.ts";

export const organizationSchema = z
  .object({
    organization_id: idSchema,
    name: z.string(),
    sandbox: z.boolean().meta({ description: "Whether it is the seeded sandbox." }),
    created_at: timestampSchema,
  })
  .meta({ id: "Organization" });
export const organizationsSchema = z.object({ organizations: z.array(organizationSchema), has_more: hasMoreAfter });
export const organizationsQuerySchema = z.strictObject(pageAfterQuery);

export const createOrganizationBodySchema = z
  .strictObject({
    name: nameSchema,
    owner: z.strictObject({
      email: z.email().max(BOUNDS.emailCharacters),
      name: nameSchema,
      password: newPasswordSchema.optional(),
    }),
    by: nameSchema.optional().meta({ description: "Who does it, for the audit trail." }),
  })
  .meta({
    id: "CreateOrganization",
    examples: [{ name: "Harbour Restaurants", owner: { email: "owner@harbour.example", name: "Kim" }, by: "Ana" }],
  });
export const createdOrganizationSchema = z
  .object({
    organization: organizationSchema,
    owner: userSchema,
    initial_password: z
      .string()
      .nullable()
      .meta({
        description: "The owner's password when none was given: shown this once. Null when one was given.",
        examples: ["4mJ0xkQ2Zt9cVbYwL8nPqR5s"],
      }),
  })
  .meta({ id: "CreatedOrganization" });
