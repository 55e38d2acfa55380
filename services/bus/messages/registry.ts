/** People and their sessions. Every list is of the caller's organization and comes in pages; a foreign id is `not_found`. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { barrierSchema, callerSchema, permissionSchema, roleSchema, USER_STATUSES } from "./caller.ts";
import { nameSchema as name } from "./name.ts";

const id = z.int().positive();
/** A password that is set, unlike one that is tried. */
export const newPassword = z.string().min(BOUNDS.passwordCharacters.min).max(BOUNDS.passwordCharacters.max);
const caller = callerSchema;

export const userSchema = z.object({
  userId: id,
  email: z.string(),
  name: z.string(),
  role: roleSchema,
  permissions: z.array(permissionSchema),
  status: z.enum(USER_STATUSES),
});

// Sessions. The token is returned once; only its SHA-256 is stored. Who may not do what the session is for gets none.
export const login = defineOperation(
  "registry.session.login",
  "once",
  z.object({
    email: z.string().max(BOUNDS.emailCharacters),
    password: z.string().max(BOUNDS.passwordCharacters.max),
    address: z.string(),
    /** What the person wants to do; `permission_denied` without it. */
    permission: permissionSchema,
    /** What the browser is known by; opens nothing. */
    browserTokens: z.array(z.string().max(BOUNDS.browserTokenCharacters)).max(BOUNDS.browserTokens).optional(),
  }),
  z.object({
    token: z.string(),
    /** What the browser is known by from now on: one of those that were sent, or a new one. */
    browserToken: z.string(),
    expiresAtMs: z.number(),
    user: userSchema,
    organizationId: id,
    barrier: barrierSchema,
  }),
);
export const logout = defineOperation(
  "registry.session.logout",
  "repeatable",
  z.object({ caller, sessionId: id }),
  barrierSchema,
);

/** An e-mail address, by which a person logs in. */
export const email = z.email().max(BOUNDS.emailCharacters);
const userReply = z.object({ user: userSchema });
export const listUsers = defineOperation(
  "registry.user.list",
  "repeatable",
  z.object({ caller, ...pageAfter }),
  z.object({ users: z.array(userSchema), hasMore: z.boolean() }),
);
export const createUser = defineOperation(
  "registry.user.create",
  "once",
  z.object({ caller, email, name, role: roleSchema, password: newPassword }),
  userReply,
);
