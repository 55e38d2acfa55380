/** Organizations and their first owners, for the operator. */
import type { z } from "zod";
import {
  createOrganization,
  getOrganization,
  listOrganizations,
  type Organization,
} from "../../../services/bus/messages/organizations.ts";
import type {
  createOrganizationBodySchema,
  organizationSchema,
  organizationsQuerySchema,
} from "../../contract/organization.ts";
import { created, type Handler, ok } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";
import { userWire } from "../backoffice/user-wire.ts";

/** Refusal: `already_exists` when the owner's e-mail address is taken. */
export const createNewOrganization: Handler<z.infer<typeof createOrganizationBodySchema>> = async ({ deps, body }) => {
  const { organization, owner, initialPassword } = await deps.bus.call(createOrganization, body);
  return created({
    organization: organizationWire(organization),
    owner: userWire(owner),
    initial_password: initialPassword,
  });
};

export const listAllOrganizations: Handler<undefined, z.infer<typeof organizationsQuerySchema>> = async ({
  deps,
  query,
}) => {
  const { since_id: sinceId, limit } = query;
  const { organizations, hasMore } = await deps.bus.call(listOrganizations, { sinceId, limit });
  return ok({ organizations: organizations.map(organizationWire), has_more: hasMore });
};

export const getAnyOrganization: Handler = async (context) => {
  const organizationId = context.id("organization_id");
  const { organization } = await context.deps.bus.call(getOrganization, { organizationId });
  return ok(organizationWire(organization));
};

function organizationWire(organization: Organization): z.infer<typeof organizationSchema> {
  const { organizationId, name, sandbox, createdAtMs } = organization;
  return { organization_id: organizationId, name, sandbox, created_at: toTimestamp(createdAtMs) };
}
