/**
 * The people of an organization and their access. Every operation needs `organization.manage`; a person of another
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

/** An e-mail address, by which a person logs in. It names one person in the whole installation. */
export const emailSchema = z.email().max(BOUNDS.emailCharacters);
/** A password that is set; one that is tried may have any length up to the bound. */
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
/** An e-mail address that is taken is `already_exists`; a further person beyond the limit is `conflict`. */
export const createUser = once(
  "registry.createUser",
  z.object({ caller, email: emailSchema, name, role: roleSchema, password: newPasswordSchema }),
  z.object({ user: userSchema }),
);
/**
 * What is left out stays as it is. Another role ends the person's sessions, because the permissions change with it. An
 * e-mail address that is taken is `already_exists`; the role of the last active owner is `conflict`.
 */
export const changeUser = once(
  "registry.changeUser",
  z.object({ caller, userId, name: name.optional(), email: emailSchema.optional(), role: roleSchema.optional() }),
  userWithBarrier,
);
/** SUSPEND ends the person's sessions everywhere; RESUME allows log-ins again. On oneself both are `conflict`. */
export const moveUser = once(
  "registry.moveUser",
  z.object({ caller, userId, move: z.enum(["SUSPEND", "RESUME"]) }),
  userWithBarrier,
);
/** For a person who has forgotten theirs: ends all of their sessions. One's own is `conflict`: see `changePassword`. */
export const resetUserPassword = once(
  "registry.resetUserPassword",
  z.object({ caller, userId, password: newPasswordSchema }),
  userWithBarrier,
);
