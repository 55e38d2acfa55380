/** Who is logged in, and until when. */
import type { z } from "zod";
import type { sessionSchema } from "../../contract/session.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";

export const currentSession: SessionHandler = ({ caller }) => {
  const session: z.infer<typeof sessionSchema> = {
    expires_at: toTimestamp(caller.expiresAtMs),
    user: {
      user_id: caller.userId,
      name: caller.name,
      role: caller.role,
      permissions: caller.permissions,
      organization_id: caller.organizationId,
    },
  };
  return ok(session);
};
