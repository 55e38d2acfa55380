/** The rows of the owner's API about people (design §5). `gateway/routes.ts` joins them into the one table. */
import {
  createUserBodySchema,
  resetPasswordBodySchema,
  userSchema,
  usersQuerySchema,
  usersSchema,
} from "./contract/backoffice.ts";
import { createOwnUser, listOwnUsers, moveOwnUser, resetOwnUserPassword } from "./handlers/backoffice/users.ts";
import { type Route, route, session } from "./route.ts";

const root = "/api/backoffice/v1";
const user = `${root}/users/{user_id}` as const;
const who = session("organization.manage");
const tag = "backoffice";

const userReply = { 200: { description: "The person after this.", schema: userSchema } };

export const backofficeUserRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: `${root}/users/`,
    operationId: "backoffice_users",
    tag,
    summary: "List the people",
    description: "Suspended ones too.",
    who,
    query: usersQuerySchema,
    replies: { 200: { description: "By id.", schema: usersSchema } },
    errors: [],
    handler: listOwnUsers,
  }),
  route({
    method: "POST",
    path: `${root}/users/`,
    operationId: "backoffice_user_create",
    tag,
    summary: "Add a person",
    description:
      "The role decides the permissions for good. An e-mail address names one person in the whole installation.",
    who,
    body: createUserBodySchema,
    replies: { 201: { description: "The person.", schema: userSchema } },
    errors: ["already_exists", "conflict"],
    handler: createOwnUser,
  }),
  route({
    method: "POST",
    path: `${user}/suspend/`,
    operationId: "backoffice_user_suspend",
    tag,
    summary: "Suspend a person",
    description: "Ends their sessions at every gateway and lets them open none. Nobody suspends themselves.",
    who,
    replies: userReply,
    errors: ["not_found", "conflict"],
    handler: moveOwnUser("SUSPEND"),
  }),
  route({
    method: "POST",
    path: `${user}/resume/`,
    operationId: "backoffice_user_resume",
    tag,
    summary: "Let a suspended person in again",
    description: "With the password that they had.",
    who,
    replies: userReply,
    errors: ["not_found", "conflict"],
    handler: moveOwnUser("RESUME"),
  }),
  route({
    method: "PUT",
    path: `${user}/password/`,
    operationId: "backoffice_user_password_reset",
    tag,
    summary: "Give a person a new password",
    description: "Ends their sessions at every gateway. One's own is changed at `session/password/`, with the old one.",
    who,
    body: resetPasswordBodySchema,
    replies: userReply,
    errors: ["not_found", "conflict"],
    handler: resetOwnUserPassword,
  }),
];
