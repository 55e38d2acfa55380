/** People of the owner's organization. */
import type { z } from "zod";
import {
  changeUser,
  createUser,
  listUsers,
  moveUser,
  resetUserPassword,
} from "../../../services/bus/messages/users.ts";
import type {
  changeUserBodySchema,
  createUserBodySchema,
  resetPasswordBodySchema,
  usersQuerySchema,
} from "../../contract/backoffice.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { userWire } from "./user-wire.ts";

export const listOwnUsers: SessionHandler<undefined, z.infer<typeof usersQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, limit } = query;
  const { users, hasMore } = await deps.bus.call(listUsers, { caller, sinceId, limit });
  return ok({ users: users.map(userWire), has_more: hasMore });
};

/** Refusal: `already_exists` when the e-mail address is taken. */
export const createOwnUser: SessionHandler<z.infer<typeof createUserBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { user } = await deps.bus.call(createUser, { caller, ...body });
  return created(userWire(user));
};

/** Refusals: `not_found`, `already_exists` for the e-mail address, `conflict` for the last owner's role. */
export const changeOwnUser: SessionHandler<z.infer<typeof changeUserBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { user } = await deps.bus.call(changeUser, { caller, userId: context.id("user_id"), ...body });
  return ok(userWire(user));
};

/** Suspending ends the person's sessions everywhere. Refusals: `not_found`, `conflict` for oneself. */
export const moveOwnUser =
  (move: "SUSPEND" | "RESUME"): SessionHandler =>
  async (context) => {
    const { caller, deps } = context;
    const { user } = await deps.bus.call(moveUser, { caller, userId: context.id("user_id"), move });
    return ok(userWire(user));
  };

/** Ends the person's sessions everywhere. Refusals: `not_found`, `conflict` for oneself. */
export const resetOwnUserPassword: SessionHandler<z.infer<typeof resetPasswordBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, userId: context.id("user_id"), password: body.password };
  const { user } = await deps.bus.call(resetUserPassword, request);
  return ok(userWire(user));
};
