/** The rows of the owner's API about people (design §5). `gateway/routes.ts` joins them into the one table. */
import {
  changeUserBodySchema,
  createUserBodySchema,
  resetPasswordBodySchema,
  userSchema,
  usersQuerySchema,
  usersSchema,
} from "./contract/backoffice.ts";
import {
  changeOwnUser,
  createOwnUser,
  listOwnUsers,
  moveOwnUser,
  resetOwnUserPassword,
} from "./handlers/backoffice/users.ts";
import { type Route, route, session } from "./http/route.ts";

const root = "/api/backoffice/v1";
const user = `${root}/users/{user_id}` as const;
const who = session("organization.manage");
const tag = "backoffice";

const userReply = { 200: { description: "The person after this.", schema: userSchema } };

export const backofficeUserRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: `${root}/users/`,
    operation: "listUsers",
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
    operation: "createUser",
    tag,
    summary: "Add a person",
    description:
      "The role decides the permissions. An e-mail address names one person in the whole installation, because people sign in by it alone: an address of another organization's person is `already_exists` too.",
    who,
    body: createUserBodySchema,
    replies: { 201: { description: "The person.", schema: userSchema } },
    errors: ["already_exists", "conflict"],
    handler: createOwnUser,
  }),
  route({
    method: "PATCH",
    path: `${user}/`,
    operation: "changeUser",
    tag,
    summary: "Change a person's name, e-mail address or role",
    description:
      "What is left out stays as it is. Another role ends the person's sessions at every gateway, and with them the leases of stations that they drive. With another name or e-mail address open sessions go on, under the name that they began with. The last active owner keeps the role (`conflict`). An e-mail address names one person in the whole installation, because people sign in by it alone: an address of another organization's person is `already_exists` too.",
    who,
    body: changeUserBodySchema,
    replies: userReply,
    errors: ["not_found", "already_exists", "conflict"],
    awaitsEffect: true,
    handler: changeOwnUser,
  }),
  route({
    method: "POST",
    path: `${user}/suspend/`,
    operation: "suspendUser",
    tag,
    summary: "Suspend a person",
    description:
      "Ends their sessions at every gateway, and with them the leases of stations that they drive, and lets them open none. A person cannot suspend themselves.",
    who,
    replies: userReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveOwnUser("SUSPEND"),
  }),
  route({
    method: "POST",
    path: `${user}/resume/`,
    operation: "resumeUser",
    tag,
    summary: "Let a suspended person in again",
    description: "With the password that they had.",
    who,
    replies: userReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: moveOwnUser("RESUME"),
  }),
  route({
    method: "PUT",
    path: `${user}/password/`,
    operation: "resetUserPassword",
    tag,
    summary: "Give a person a new password",
    description: "Ends their sessions at every gateway. One's own is changed at `session/password/`, with the old one.",
    who,
    body: resetPasswordBodySchema,
    replies: userReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: resetOwnUserPassword,
  }),
];
