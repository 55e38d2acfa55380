/**
 * The people of an organization and their access. Every operation needs `organization.manage`. A person of another
 * organization is `not_found`.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { barrierSchema, callerSchema as caller, permissionSchema, roleSchema } from "./caller.ts";
import { nameSchema as name } from "./name.ts";

const userId = z.int().positive();

/** A suspended person has no session and cannot log in. */
export const USER_STATUSES = ["active", "suspended"] as const;

/** The e-mail address with which a person logs in. It is unique in the installation. */
export const emailSchema = z.email().max(BOUNDS.emailCharacters);
/** A new password. A password at a log-in may be shorter. */
export const newPasswordSchema = z.string().min(BOUNDS.passwordCharacters.min).max(BOUNDS.passwordCharacters.max);

export const userSchema = z.object({
  userId,
  email: z.string(),
  name: z.string(),
  role: roleSchema,
  permissions: z.array(permissionSchema),
  status: z.enum(USER_STATUSES),
});
export type User = z.infer<typeof userSchema>;

const userWithBarrier = z.object({ user: userSchema, barrier: barrierSchema });

/** By id. */
export const listUsers = repeatable(
  "registry.listUsers",
  z.object({ caller, ...pageAfter }),
  z.object({ users: z.array(userSchema), hasMore: z.boolean() }),
);
/**
 * Refuses with `already_exists` for the e-mail address of another person, and with `conflict` beyond the limit of
 * people.
 */
export const createUser = once(
  "registry.createUser",
  z.object({ caller, email: emailSchema, name, role: roleSchema, password: newPasswordSchema }),
  z.object({ user: userSchema }),
);
/**
 * A field that is left out does not change. A new role ends the person's sessions, because the permissions change.
 * Refuses with `already_exists` for the e-mail address of another person, and with `conflict` for a new role of the
 * last active owner.
 */
export const changeUser = once(
  "registry.changeUser",
  z.object({ caller, userId, name: name.optional(), email: emailSchema.optional(), role: roleSchema.optional() }),
  userWithBarrier,
);
/**
 * SUSPEND ends all sessions of the person; RESUME allows log-ins again. Both refuse with `conflict` when the person is
 * the caller.
 */
export const moveUser = once(
  "registry.moveUser",
  z.object({ caller, userId, move: z.enum(["SUSPEND", "RESUME"]) }),
  userWithBarrier,
);
/**
 * Sets the password of a person who has forgotten it, and ends all sessions of the person. Refuses with `conflict` when
 * the person is the caller: see `changePassword`.
 */
export const resetUserPassword = once(
  "registry.resetUserPassword",
  z.object({ caller, userId, password: newPasswordSchema }),
  userWithBarrier,
);
