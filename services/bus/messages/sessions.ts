/** Sessions of people: log in, log out, the own password, and the stations whose lease a session takes. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { barrierSchema, callerSchema, permissionSchema } from "./caller.ts";
import { newPasswordSchema, userSchema } from "./users.ts";

const id = z.int().positive();
const caller = callerSchema;
/** A password that is tried. */
const password = z.string().max(BOUNDS.passwordCharacters.max);

/** An entry of the SESSIONS bucket; the key is the session token's SHA-256 in hex. */
export const sessionEntrySchema = callerSchema.extend({ sessionId: id, expiresAtMs: z.number() });
export type SessionEntry = z.infer<typeof sessionEntrySchema>;

/**
 * The token is returned once; only its SHA-256 is stored. Refuses with `login_failed`, `login_throttled`, and with
 * `permission_denied` for a person who is suspended or does not have the permission.
 */
export const logIn = once(
  "registry.logIn",
  z.object({
    email: z.string().max(BOUNDS.emailCharacters),
    password,
    address: z.string(),
    /** What the person wants to do. */
    permission: permissionSchema,
    /** The tokens that identify the browser; they grant no access. */
    browserTokens: z.array(z.string().max(BOUNDS.browserTokenCharacters)).max(BOUNDS.browserTokens).optional(),
  }),
  z.object({
    token: z.string(),
    /** The browser's token from now on: one of those that were sent, or a new one. */
    browserToken: z.string(),
    expiresAtMs: z.number(),
    user: userSchema,
    organizationId: id,
    barrier: barrierSchema,
  }),
);
/** Ends one of the caller's sessions; one that has ended already is answered alike. */
export const logOut = repeatable("registry.logOut", z.object({ caller, sessionId: id }), barrierSchema);
/**
 * The caller's own. A wrong old password is `invalid_request` at `/old_password` and counts as an attempt of the session;
 * the caller's other sessions end.
 */
export const changePassword = once(
  "registry.changePassword",
  z.object({ caller, sessionId: id, address: z.string(), oldPassword: password, newPassword: newPasswordSchema }),
  z.object({ barrier: barrierSchema }),
);
/**
 * The session is about to take the station's lease: its end will then notify the station. Refuses with `session_ended`, and
 * with `conflict` when the session has taken as many stations as one may.
 */
export const bindStation = repeatable(
  "registry.bindStation",
  z.object({ caller, sessionId: id, stationId: id }),
  z.object({}),
);
