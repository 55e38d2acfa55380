/** Logs a person in to one of the two APIs; each asks for its own permission. */
import type { z } from "zod";
import type { Permission } from "../../../services/bus/messages/caller.ts";
import * as sessions from "../../../services/bus/messages/sessions.ts";
import type { logInBodySchema, newSessionSchema } from "../../contract/session.ts";
import { browserCookie, browserTokens, sessionCookie } from "../../http/cookies.ts";
import { type Handler, ok } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";

/**
 * Answers with the token and sets the cookie as well, so that a page and a program log in alike. Another cookie marks the
 * browser as one where this person has logged in. A person without the permission gets no session. Refusals: `login_failed`, `login_throttled`, `permission_denied`.
 */
export const logIn =
  (permission: Permission, path: string): Handler<z.infer<typeof logInBodySchema>> =>
  async (context) => {
    const { email, password } = context.body;
    const { deps, address, secure } = context;
    const earlier = browserTokens(context.header("cookie"));
    const request = { email, password, address, permission, browserTokens: [...earlier] };
    const { token, browserToken, expiresAtMs, user, organizationId } = await deps.bus.call(sessions.logIn, request);
    const session: z.infer<typeof newSessionSchema> = {
      token,
      expires_at: toTimestamp(expiresAtMs),
      user: {
        user_id: user.userId,
        name: user.name,
        role: user.role,
        permissions: user.permissions,
        organization_id: organizationId,
      },
    };
    const cookies = [
      sessionCookie(token, { maxAgeMs: expiresAtMs - deps.nowMs(), secure }),
      browserCookie(browserToken, { earlier, path, secure }),
    ];
    return { ...ok(session), cookies };
  };
