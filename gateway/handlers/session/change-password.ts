/** Changes the caller's own password; their other sessions end. */
import type { z } from "zod";
import { changePassword } from "../../../services/bus/messages/sessions.ts";
import type { changePasswordBodySchema } from "../../contract/session.ts";
import { noContent, type SessionHandler } from "../../http/handler-context.ts";

/** Refusals: `invalid_request` at `/old_password`, `login_throttled`. */
export const changeOwnPassword: SessionHandler<z.infer<typeof changePasswordBodySchema>> = async (context) => {
  const { caller, deps, address, body } = context;
  const { old_password: oldPassword, new_password: newPassword } = body;
  const { sessionId } = caller;
  await deps.bus.call(changePassword, { caller, sessionId, address, oldPassword, newPassword });
  return noContent();
};
