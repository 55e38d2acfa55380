/** People of the owner's organization. */
import type { z } from "zod";
import { createUser, listUsers } from "../../../services/bus/messages/registry.ts";
import type { createUserBodySchema } from "../../contract/backoffice.ts";
import { created, ok, type SessionHandler } from "../context.ts";
import { userWire } from "./user-wire.ts";

export const listOwnUsers: SessionHandler = async ({ caller, deps }) => {
  const { users } = await deps.bus.call(listUsers, { caller });
  return ok({ users: users.map(userWire) });
};

/** Refusal: `already_exists` when the e-mail address is taken. */
export const createOwnUser: SessionHandler<z.infer<typeof createUserBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { user } = await deps.bus.call(createUser, { caller, ...body });
  return created(userWire(user));
};
