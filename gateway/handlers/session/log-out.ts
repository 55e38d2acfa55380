/** Ends the caller's session everywhere and takes the cookie back. */

import * as sessions from "../../../services/bus/messages/sessions.ts";
import { endedSessionCookie } from "../../http/cookies.ts";
import { noContent, type SessionHandler } from "../../http/handler-context.ts";

export const logOut: SessionHandler = async ({ caller, deps, secure }) => {
  await deps.bus.call(sessions.logOut, { caller, sessionId: caller.sessionId });
  return { ...noContent(), cookies: [endedSessionCookie(secure)] };
};
