/** People's access: changes, suspend, resume, new passwords, and the stations that a session takes. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { barrierSchema, callerSchema as caller, roleSchema } from "./caller.ts";
import { nameSchema as name } from "./name.ts";
import { email, newPassword, userSchema } from "./registry.ts";

const id = z.int().positive();
const userReplyWithBarrier = z.object({ user: userSchema, barrier: barrierSchema });

/** Ends the person's sessions everywhere and opens none until RESUME. Nobody suspends or resumes themselves (`conflict`). */
export const moveUser = defineOperation(
  "registry.user.move",
  "once",
  z.object({ caller, userId: id, move: z.enum(["SUSPEND", "RESUME"]) }),
  userReplyWithBarrier,
);
/**
 * What is left out stays as it is. Another role ends the person's sessions, because their permissions are other ones. An
 * e-mail address that is taken is `already_exists`; the role of the last active owner is `conflict`.
 */
export const changeUser = defineOperation(
  "registry.user.change",
  "once",
  z.object({ caller, userId: id, name: name.optional(), email: email.optional(), role: roleSchema.optional() }),
  userReplyWithBarrier,
);
/** For a person who has forgotten theirs: ends all of their sessions. One's own is `conflict`: see `changePassword`. */
export const resetPassword = defineOperation(
  "registry.user.reset-password",
  "once",
  z.object({ caller, userId: id, password: newPassword }),
  userReplyWithBarrier,
);
/**
 * The caller's own. A wrong old password is `invalid_request` at `/old_password` and counts as an attempt to log in; the
 * caller's other sessions end.
 */
export const changePassword = defineOperation(
  "registry.user.change-password",
  "once",
  z.object({
    caller,
    sessionId: id,
    address: z.string(),
    oldPassword: z.string().max(BOUNDS.passwordCharacters.max),
    newPassword,
  }),
  z.object({ barrier: barrierSchema }),
);

/**
 * The session is about to take the station's lease: its end will then notify the station. Refuses with `session_ended`, and
 * with `conflict` when the session has taken as many stations as one may.
 */
export const bindStation = defineOperation(
  "registry.session.bind-station",
  "repeatable",
  z.object({ caller, sessionId: id, stationId: id }),
  z.object({}),
);
