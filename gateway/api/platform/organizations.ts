/** Organizations and their first owners, for the operator. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/organizations.ts";
import { emailSchema, newPasswordSchema } from "../../../services/bus/messages/users.ts";
import { created, type Handler, ok } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { platform, route } from "../../http/route.ts";
import { idSchema, nameSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { userJson, userSchema } from "../backoffice/users.ts";

const organizationSchema = z
  .object({
    organization_id: idSchema,
    name: z.string(),
    sandbox: z.boolean().meta({ description: "Whether it is the seeded sandbox." }),
    created_at: timestampSchema,
  })
  .meta({ id: "Organization" });
export const organizationsSchema = z.object({ organizations: z.array(organizationSchema), has_more: hasMoreAfter });
const organizationsQuerySchema = z.strictObject(pageAfterQuery);

const createOrganizationBodySchema = z
  .strictObject({
    name: nameSchema,
    owner: z.strictObject({
      email: emailSchema,
      name: nameSchema,
      password: newPasswordSchema.optional(),
    }),
    by: nameSchema.optional().meta({ description: "Who does it, for the audit log." }),
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
        description: "The owner's generated password, shown only once. Null when the request has a password.",
        examples: ["4mJ0xkQ2Zt9cVbYwL8nPqR5s"],
      }),
  })
  .meta({ id: "CreatedOrganization" });

const resetOwnerPasswordBodySchema = z
  .strictObject({
    email: emailSchema,
    password: newPasswordSchema.optional(),
    by: nameSchema.optional().meta({ description: "Who does it, for the audit log." }),
  })
  .meta({ id: "ResetOwnerPassword", examples: [{ email: "owner@harbour.example", by: "Ana" }] });
export const ownerPasswordResetSchema = z
  .object({
    owner: userSchema,
    initial_password: z.string().nullable().meta({
      description: "The owner's generated password, shown only once. Null when the request has a password.",
    }),
  })
  .meta({
    id: "OwnerPasswordReset",
    examples: [
      {
        owner: {
          user_id: 12,
          email: "owner@harbour.example",
          name: "Kim",
          role: "owner",
          permissions: ["organization.manage"],
          status: "active",
        },
        initial_password: "4mJ0xkQ2Zt9cVbYwL8nPqR5s",
      },
    ],
  });

function organizationJson(organization: messages.Organization): z.infer<typeof organizationSchema> {
  const { organizationId, name, sandbox, createdAtMs } = organization;
  return { organization_id: organizationId, name, sandbox, created_at: toTimestamp(createdAtMs) };
}

const createOrganization: Handler<z.infer<typeof createOrganizationBodySchema>> = async ({ deps, body }) => {
  const { organization, owner, initialPassword } = await deps.bus.call(messages.createOrganization, body);
  return created({
    organization: organizationJson(organization),
    owner: userJson(owner),
    initial_password: initialPassword,
  });
};

const resetOwnerPassword: Handler<z.infer<typeof resetOwnerPasswordBodySchema>> = async ({ deps, body }) => {
  const { owner, initialPassword } = await deps.bus.call(messages.resetOwnerPassword, body);
  return ok({ owner: userJson(owner), initial_password: initialPassword });
};

const listOrganizations: Handler<undefined, z.infer<typeof organizationsQuerySchema>> = async ({ deps, query }) => {
  const request = { sinceId: query.since_id, limit: query.limit };
  const { organizations, hasMore } = await deps.bus.call(messages.listOrganizations, request);
  return ok({ organizations: organizations.map(organizationJson), has_more: hasMore });
};

const getOrganization: Handler = async (context) => {
  const organizationId = context.id("organization_id");
  const { organization } = await context.deps.bus.call(messages.getOrganization, { organizationId });
  return ok(organizationJson(organization));
};

const organizations = "/api/platform/v1/organizations/" as const;
const tag = "platform";

export const organizationRoutes = [
  route({
    method: "POST",
    path: organizations,
    operation: "createOrganization",
    tag,
    summary: "Add an organization and its first owner",
    description:
      "The owner creates everything else in the back office. Without `owner.password`, only this answer shows an initial password; the owner changes it at `/api/backoffice/v1/session/password/`. An e-mail address belongs to one person in the whole installation: a repetition is `already_exists` and creates nothing.",
    who: platform,
    body: createOrganizationBodySchema,
    replies: { 201: { description: "The organization and its owner.", schema: createdOrganizationSchema } },
    errors: ["already_exists"],
    handler: createOrganization,
  }),
  route({
    method: "POST",
    path: "/api/platform/v1/owner-passwords/",
    operation: "resetOwnerPassword",
    tag,
    summary: "Give an owner a new password",
    description:
      "For an owner who cannot log in; other people get a new password from their owner. Ends the owner's sessions at every gateway. Without `password`, only this answer shows an initial password; a repetition generates another one. The e-mail address of a person who is not an owner is `not_found`. A suspended owner stays suspended.",
    who: platform,
    body: resetOwnerPasswordBodySchema,
    replies: { 200: { description: "The owner, with the new password.", schema: ownerPasswordResetSchema } },
    errors: ["not_found"],
    awaitsEffect: true,
    handler: resetOwnerPassword,
  }),
  route({
    method: "GET",
    path: organizations,
    operation: "listOrganizations",
    tag,
    summary: "List the organizations",
    description: "The list includes the sandbox.",
    who: platform,
    query: organizationsQuerySchema,
    replies: { 200: { description: "By id.", schema: organizationsSchema } },
    handler: listOrganizations,
  }),
  route({
    method: "GET",
    path: `${organizations}{organization_id}/`,
    operation: "getOrganization",
    tag,
    summary: "Read an organization",
    description: "The answer has the same fields as the list.",
    who: platform,
    replies: { 200: { description: "The organization.", schema: organizationSchema } },
    errors: ["not_found"],
    handler: getOrganization,
  }),
];
