/** The people of the owner's organization and their access. */
import { z } from "zod";
import { PERMISSIONS, ROLES } from "../../../services/bus/messages/caller.ts";
import * as messages from "../../../services/bus/messages/users.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, nameSchema } from "../../http/shared-schemas.ts";

export const roleSchema = z.enum(ROLES).meta({ id: "Role" });
export const permissionSchema = z.enum(PERMISSIONS).meta({ id: "Permission" });
const userStatusSchema = z
  .enum(messages.USER_STATUSES)
  .meta({ id: "UserStatus", description: "A suspended person has no session and cannot log in." });

export const userSchema = z
  .object({
    user_id: idSchema,
    email: z.string(),
    name: z.string(),
    role: roleSchema,
    permissions: z.array(permissionSchema),
    status: userStatusSchema,
  })
  .meta({
    id: "User",
    examples: [
      {
        user_id: 31,
        email: "cashier@restaurant.example",
        name: "Kim",
        role: "cashier",
        permissions: ["payments.collect"],
        status: "suspended",
      },
    ],
  });
export const usersSchema = z.object({ users: z.array(userSchema), has_more: hasMoreAfter });
const usersQuerySchema = z.strictObject(pageAfterQuery);
const createUserBodySchema = z
  .strictObject({
    email: messages.emailSchema,
    name: nameSchema,
    role: roleSchema,
    password: messages.newPasswordSchema,
  })
  .meta({
    id: "CreateUser",
    examples: [{ email: "cashier@restaurant.example", name: "Kim", role: "cashier", password: "a long pass phrase" }],
  });
const changeUserBodySchema = z
  .strictObject({
    name: nameSchema.optional(),
    email: messages.emailSchema.optional(),
    role: roleSchema.optional().meta({ description: "The role decides the permissions." }),
  })
  .meta({ id: "ChangeUser", examples: [{ name: "Kim Park" }, { role: "reconciliation_operator" }] });
const resetUserPasswordBodySchema = z
  .strictObject({ password: messages.newPasswordSchema })
  .meta({ id: "ResetPassword", examples: [{ password: "another long pass phrase" }] });

/** A person in JSON. */
export function userJson(user: messages.User): z.infer<typeof userSchema> {
  const { userId, email, name, role, permissions, status } = user;
  return { user_id: userId, email, name, role, permissions, status };
}

const listUsers: SessionHandler<undefined, z.infer<typeof usersQuerySchema>> = async ({ caller, deps, query }) => {
  const request = { caller, sinceId: query.since_id, limit: query.limit };
  const { users, hasMore } = await deps.bus.call(messages.listUsers, request);
  return ok({ users: users.map(userJson), has_more: hasMore });
};

const createUser: SessionHandler<z.infer<typeof createUserBodySchema>> = async ({ caller, deps, body }) => {
  const { user } = await deps.bus.call(messages.createUser, { caller, ...body });
  return created(userJson(user));
};

const changeUser: SessionHandler<z.infer<typeof changeUserBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { user } = await deps.bus.call(messages.changeUser, { caller, userId: context.id("user_id"), ...body });
  return ok(userJson(user));
};

const moveUser =
  (move: "SUSPEND" | "RESUME"): SessionHandler =>
  async (context) => {
    const { caller, deps } = context;
    const { user } = await deps.bus.call(messages.moveUser, { caller, userId: context.id("user_id"), move });
    return ok(userJson(user));
  };

const resetUserPassword: SessionHandler<z.infer<typeof resetUserPasswordBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, userId: context.id("user_id"), password: body.password };
  const { user } = await deps.bus.call(messages.resetUserPassword, request);
  return ok(userJson(user));
};

const ADDRESS_OF_ONE =
  "An e-mail address belongs to one person in the whole installation, because people log in with it alone. So the address of a person of another organization is `already_exists` too.";

const users = "/api/backoffice/v1/users/" as const;
const user = `${users}{user_id}` as const;
const userReply = { 200: { description: "The person after the change.", schema: userSchema } };

export const userRoutes = [
  backofficeRoute({
    method: "GET",
    path: users,
    operation: "listUsers",
    summary: "List the people",
    description: "The list includes suspended people.",
    query: usersQuerySchema,
    replies: { 200: { description: "By id.", schema: usersSchema } },
    handler: listUsers,
  }),
  backofficeRoute({
    method: "POST",
    path: users,
    operation: "createUser",
    summary: "Add a person",
    description: `The role decides the permissions. ${ADDRESS_OF_ONE}`,
    body: createUserBodySchema,
    replies: { 201: { description: "The person.", schema: userSchema } },
    errors: ["already_exists", "conflict"],
    handler: createUser,
  }),
  backofficeRoute({
    method: "PATCH",
    path: `${user}/`,
    operation: "changeUser",
    summary: "Change a person's name, e-mail address or role",
    description: `A field that is left out does not change. A new role ends the person's sessions at every gateway, and with them the leases of the stations that the person drives. After a change of name or e-mail address, open sessions continue under the earlier name. The last active owner cannot get another role (\`conflict\`). ${ADDRESS_OF_ONE}`,
    body: changeUserBodySchema,
    replies: userReply,
    errors: ["not_found", "already_exists", "conflict"],
    awaitsEffect: true,
    handler: changeUser,
  }),
  backofficeRoute({
    method: "POST",
    path: `${user}/suspend/`,
    operation: "suspendUser",
    summary: "Suspend a person",
    description:
      "Ends the person's sessions at every gateway, and with them the leases of the stations that the person drives. The person cannot log in again. You cannot suspend yourself (`conflict`).",
    replies: userReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveUser("SUSPEND"),
  }),
  backofficeRoute({
    method: "POST",
    path: `${user}/resume/`,
    operation: "resumeUser",
    summary: "Resume a suspended person",
    description: "The person can log in again; the password is unchanged.",
    replies: userReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveUser("RESUME"),
  }),
  backofficeRoute({
    method: "PUT",
    path: `${user}/password/`,
    operation: "resetUserPassword",
    summary: "Give a person a new password",
    description:
      "Ends the person's sessions at every gateway. A repetition acts again: it also ends the sessions that the person has opened with the new password. People change their own password at `session/password/`, with the old one.",
    body: resetUserPasswordBodySchema,
    replies: userReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: resetUserPassword,
  }),
];
