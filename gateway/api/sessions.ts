/** Sessions of people: log in, log out, change the password. The same routes for back office, cashiers and reconciliation. */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import type { Permission, Role } from "../../services/bus/messages/caller.ts";
import * as messages from "../../services/bus/messages/sessions.ts";
import { newPasswordSchema, type User } from "../../services/bus/messages/users.ts";
import { browserCookie, browserTokens, endedSessionCookie, type PeoplesApi, sessionCookie } from "../http/cookies.ts";
import { type Handler, noContent, ok, type SessionHandler } from "../http/handler-context.ts";
import { anyoneWithCookie, anySession, route, session } from "../http/route.ts";
import { idSchema, timestampSchema, toTimestamp } from "../http/shared-schemas.ts";
import { permissionSchema, roleSchema } from "./backoffice/users.ts";

/** The API in which the people of each role log in. */
export const API_OF_ROLE: Readonly<Record<Role, PeoplesApi>> = {
  owner: "backoffice",
  cashier: "cashier",
  reconciliation_operator: "reconciliation",
};

const triedPasswordSchema = z.string().min(1).max(BOUNDS.passwordCharacters.max);

const logInBodySchema = z
  .strictObject({
    email: z
      .string()
      .min(1)
      .max(BOUNDS.emailCharacters)
      .meta({ examples: ["cashier@sandbox.example"] }),
    password: triedPasswordSchema,
  })
  .meta({ id: "LogIn", examples: [{ email: "cashier@sandbox.example", password: "a long pass phrase" }] });

const changePasswordBodySchema = z
  .strictObject({ old_password: triedPasswordSchema, new_password: newPasswordSchema })
  .meta({
    id: "ChangePassword",
    examples: [{ old_password: "a long pass phrase", new_password: "another long pass phrase" }],
  });

/** The logged-in person. */
export const personSchema = z
  .object({
    user_id: idSchema,
    name: z.string(),
    role: roleSchema,
    permissions: z.array(permissionSchema),
    organization_id: idSchema,
  })
  .meta({ id: "Person" });

/** Only this answer shows the token. Programs send it as a bearer token, and pages have it in the cookie `dp_session`. */
export const newSessionSchema = z
  .object({
    token: z.string().meta({ description: "Send it as `Authorization: Bearer <token>`." }),
    expires_at: timestampSchema,
    user: personSchema,
  })
  .meta({
    id: "NewSession",
    examples: [
      {
        token: "the token, shown this once",
        expires_at: "2026-11-21T00:00:00.000Z",
        user: {
          user_id: 31,
          name: "Kim",
          role: "cashier",
          permissions: ["payments.collect"],
          organization_id: 1,
        },
      },
    ],
  });

export const sessionSchema = z.object({ expires_at: timestampSchema, user: personSchema }).meta({ id: "Session" });

export function personJson(
  user: Pick<User, "userId" | "name" | "role" | "permissions">,
  organizationId: number,
): z.infer<typeof personSchema> {
  const { userId, name, role, permissions } = user;
  return { user_id: userId, name, role, permissions, organization_id: organizationId };
}

/** Answers with the token and sets the cookies, so that pages and programs use the same operation. */
const logIn =
  (
    permission: Permission,
    { api, path }: { readonly api: PeoplesApi; readonly path: string },
  ): Handler<z.infer<typeof logInBodySchema>> =>
  async (context) => {
    const { body, deps, address, secure } = context;
    const earlier = browserTokens(context.header("cookie"));
    const request = { ...body, address, permission, browserTokens: [...earlier] };
    const { token, browserToken, expiresAtMs, user, organizationId } = await deps.logInGate.run(request, () =>
      deps.bus.call(messages.logIn, request),
    );
    const reply: z.infer<typeof newSessionSchema> = {
      token,
      expires_at: toTimestamp(expiresAtMs),
      user: personJson(user, organizationId),
    };
    const cookies = [
      sessionCookie(token, { api, maxAgeMs: expiresAtMs - deps.nowMs(), secure }),
      browserCookie(browserToken, { earlier, path, secure }),
    ];
    return { ...ok(reply), cookies };
  };

const getSession: SessionHandler = ({ caller }) => {
  const reply: z.infer<typeof sessionSchema> = {
    expires_at: toTimestamp(caller.expiresAtMs),
    user: personJson(caller, caller.organizationId),
  };
  return ok(reply);
};

const logOut =
  (api: PeoplesApi): SessionHandler =>
  async ({ caller, deps, secure }) => {
    await deps.bus.call(messages.logOut, { caller, sessionId: caller.sessionId });
    return { ...noContent(), cookies: [endedSessionCookie({ api, secure })] };
  };

const changePassword: SessionHandler<z.infer<typeof changePasswordBodySchema>> = async (context) => {
  const { caller, deps, address, body } = context;
  const { old_password: oldPassword, new_password: newPassword } = body;
  const request = { caller, sessionId: caller.sessionId, address, oldPassword, newPassword };
  await deps.bus.call(messages.changePassword, request);
  return noContent();
};

/** The rows of one API. The APIs differ in the permission that a person needs. */
export function sessionRoutes<const TApi extends PeoplesApi>(api: TApi, permission: Permission) {
  const path = `/api/${api}/v1/session/` as const;
  return [
    route({
      method: "POST",
      path,
      operation: "logIn",
      tag: "session",
      summary: "Log in",
      description: `For people with the permission \`${permission}\`. The answer carries the token for programs and sets the cookie \`dp_session\` for pages, of this API alone. The cookie \`dp_browser\` opens nothing: a log-in that sends it back is not limited by what others guess, also from the same address.`,
      who: anyoneWithCookie,
      body: logInBodySchema,
      replies: { 200: { description: "The session.", schema: newSessionSchema } },
      errors: ["login_failed", "login_throttled", "permission_denied"],
      awaitsEffect: true,
      handler: logIn(permission, { api, path }),
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
      handler: getSession,
    }),
    route({
      method: "DELETE",
      path,
      operation: "logOut",
      tag: "session",
      summary: "Log out",
      description:
        "Ends this session at every gateway; the person's other sessions stay valid. A collection under way continues.",
      who: anySession,
      replies: { 204: { description: "The session has ended and the cookie is cleared.", schema: null } },
      awaitsEffect: true,
      handler: logOut(api),
    }),
    route({
      method: "PUT",
      path: `/api/${api}/v1/session/password/` as const,
      operation: "changePassword",
      tag: "session",
      summary: "Change one's own password",
      description:
        "A wrong old password is `invalid_request` at `/old_password`. Each attempt counts for this session's limit. The person's other sessions end; this one stays valid.",
      who: session(permission),
      body: changePasswordBodySchema,
      replies: { 204: { description: "The new password holds.", schema: null } },
      errors: ["login_throttled"],
      awaitsEffect: true,
      handler: changePassword,
    }),
  ];
}
