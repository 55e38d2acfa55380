/** A person for the wire. */
import type { z } from "zod";
import type { userSchema as UserMessage } from "../../../services/bus/messages/users.ts";
import type { userSchema } from "../../contract/backoffice.ts";

export function userWire(user: z.infer<typeof UserMessage>): z.infer<typeof userSchema> {
  const { userId, email, name, role, permissions, status } = user;
  return { user_id: userId, email, name, role, permissions, status };
}
