/** The session rows of one API: log in, who am I, log out. The owner's and the cashier's API differ in the permission. */
import type { Permission } from "../services/bus/messages/caller.ts";
import { changePasswordBodySchema, logInBodySchema, newSessionSchema, sessionSchema } from "./contract/session.ts";
import { changeOwnPassword } from "./handlers/session/change-password.ts";
import { currentSession } from "./handlers/session/current-session.ts";
import { logIn } from "./handlers/session/log-in.ts";
import { logOut } from "./handlers/session/log-out.ts";
import { anyoneWithCookie, anySession, type Route, route, session } from "./http/route.ts";

export function sessionRoutes(
  api: "cashier" | "backoffice" | "reconciliation",
  permission: Permission,
): readonly Route[] {
  const path = `/api/${api}/v1/session/` as const;
  return [
    route({
      method: "POST",
      path,
      operation: "logIn",
      tag: "session",
      summary: "Log in",
      description: `For people with the permission \`${permission}\`. The answer carries the token for programs and sets the cookie \`dp_session\` for pages. The cookie \`dp_browser\` opens nothing: a log-in that sends it back is not limited by what others guess, also from the same address.`,
      who: anyoneWithCookie,
      body: logInBodySchema,
      replies: { 200: { description: "The session.", schema: newSessionSchema } },
      errors: ["login_failed", "login_throttled", "permission_denied"],
      awaitsEffect: true,
      handler: logIn(permission, path),
    }),
    route({
      method: "GET",
      path,
      operation: "getSession",
      tag: "session",
      summary: "Who is logged in",
      description: "The person, the permissions, and when the session ends by itself.",
      who: session(permission),
      replies: { 200: { description: "The session.", schema: sessionSchema } },
      errors: [],
      handler: currentSession,
    }),
    route({
      method: "DELETE",
      path,
      operation: "logOut",
      tag: "session",
      summary: "Log out",
      description:
        "Ends this session at every gateway; the person's other sessions go on. A collection under way goes on as well.",
      who: anySession,
      replies: { 204: { description: "The session has ended and the cookie is cleared.", schema: null } },
      errors: [],
      awaitsEffect: true,
      handler: logOut,
    }),
    route({
      method: "PUT",
      path: `${path}password/`,
      operation: "changePassword",
      tag: "session",
      summary: "Change one's own password",
      description:
        "A wrong old password is `invalid_request` at `/old_password` and counts as an attempt to log in. The person's other sessions end; this one goes on.",
      who: session(permission),
      body: changePasswordBodySchema,
      replies: { 204: { description: "The new password holds.", schema: null } },
      errors: ["login_throttled"],
      awaitsEffect: true,
      handler: changeOwnPassword,
    }),
  ];
}
