/**
 * Sessions of people: log in, log out, change the password, and bind a session to the stations whose lease it takes.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { barrierSchema, callerSchema, permissionSchema } from "./caller.ts";
import { newPasswordSchema, userSchema } from "./users.ts";

const id = z.int().positive();
const caller = callerSchema;
/** A password that a person enters at a log-in. */
const password = z.string().max(BOUNDS.passwordCharacters.max);

/** An entry of the SESSIONS bucket; the key is the session token's SHA-256 in hex. */
export const sessionEntrySchema = callerSchema.extend({ sessionId: id, expiresAtMs: z.number() });
export type SessionEntry = z.infer<typeof sessionEntrySchema>;

/**
 * Only this reply has the token; the service stores its SHA-256. Refuses with `login_failed`, `login_throttled`, and
 * with `permission_denied` for a person who is suspended or lacks the permission.
 */
export const logIn = once(
  "registry.logIn",
  z.object({
    email: z.string().max(BOUNDS.emailCharacters),
    password,
    address: z.string(),
    /** The permission that the person needs. */
    permission: permissionSchema,
    /** The tokens that identify the browser; they grant no access. */
    browserTokens: z.array(z.string().max(BOUNDS.browserTokenCharacters)).max(BOUNDS.browserTokens).optional(),
  }),
  z.object({
    token: z.string(),
    /** The browser's token from now on: one of the sent tokens, or a new one. */
    browserToken: z.string(),
    expiresAtMs: z.number(),
    user: userSchema,
    organizationId: id,
    barrier: barrierSchema,
  }),
);
/** Ends one of the caller's sessions. A repetition gets the same answer. */
export const logOut = repeatable("registry.logOut", z.object({ caller, sessionId: id }), barrierSchema);
/**
 * Changes the caller's password and ends the caller's other sessions. Refuses a wrong old password with
 * `invalid_request` at `/old_password`, and counts it as an attempt of the session.
 */
export const changePassword = once(
  "registry.changePassword",
  z.object({ caller, sessionId: id, address: z.string(), oldPassword: password, newPassword: newPasswordSchema }),
  z.object({ barrier: barrierSchema }),
);
/**
 * Called before the session takes the station's lease, so that the end of the session notifies the station. Refuses
 * with `session_ended`, and with `conflict` when the session has the most stations that it may have.
 */
export const bindStation = repeatable(
  "registry.bindStation",
  z.object({ caller, sessionId: id, stationId: id }),
  z.object({}),
);
