/** Who acts, in the trail. */
import type { Caller } from "../../bus/messages/caller.ts";

export const ownerActor = ({ role, userId, name }: Caller) => ({ kind: role, id: userId, name });
