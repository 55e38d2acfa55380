/** Who acts, in the trail. */
import type { Caller } from "../../bus/messages/caller.ts";
import type { ConsumerCaller } from "../../bus/messages/robotics.ts";
import type { RoboticsTrailEntry } from "../../db/robotics-trail.ts";

type Actor = RoboticsTrailEntry["actor"];

export const personActor = ({ role, userId, name }: Pick<Caller, "role" | "userId" | "name">): Actor => ({
  kind: role,
  id: userId,
  name,
});

export const consumerActor = ({ consumerId, name }: Pick<ConsumerCaller, "consumerId" | "name">): Actor => ({
  kind: "robotics_consumer",
  id: consumerId,
  name,
});
