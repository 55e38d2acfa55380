/** The rows of the platform's API about organizations (design §5). `gateway/routes.ts` joins them into the one table. */
import {
  createdOrganizationSchema,
  createOrganizationBodySchema,
  organizationSchema,
  organizationsQuerySchema,
  organizationsSchema,
} from "./contract/organization.ts";
import { createNewOrganization, getAnyOrganization, listAllOrganizations } from "./handlers/platform/organizations.ts";
import { platform, type Route, route } from "./http/route.ts";

const root = "/api/platform/v1/organizations";
const tag = "platform";

export const platformRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: `${root}/`,
    operation: "createOrganization",
    tag,
    summary: "Add an organization and its first owner",
    description:
      "The owner makes everything else in the back office. Without `owner.password` the answer shows an initial password, this once; the owner changes it at `/api/backoffice/v1/session/password/`. An e-mail address names one person in the whole installation: repeated, the request is `already_exists`, and nothing is made.",
    who: platform,
    body: createOrganizationBodySchema,
    replies: { 201: { description: "The organization and its owner.", schema: createdOrganizationSchema } },
    errors: ["already_exists"],
    handler: createNewOrganization,
  }),
  route({
    method: "GET",
    path: `${root}/`,
    operation: "listOrganizations",
    tag,
    summary: "List the organizations",
    description: "The sandbox too.",
    who: platform,
    query: organizationsQuerySchema,
    replies: { 200: { description: "By id.", schema: organizationsSchema } },
    errors: [],
    handler: listAllOrganizations,
  }),
  route({
    method: "GET",
    path: `${root}/{organization_id}/`,
    operation: "getOrganization",
    tag,
    summary: "Read an organization",
    description: "As the list has it.",
    who: platform,
    replies: { 200: { description: "The organization.", schema: organizationSchema } },
    errors: ["not_found"],
    handler: getAnyOrganization,
  }),
];
