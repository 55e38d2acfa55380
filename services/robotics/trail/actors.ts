/** Who acts, in the trail. */
import type { ConsumerCaller } from "../../bus/messages/robotics.ts";
import type { RoboticsTrailEntry } from "../../db/robotics-trail.ts";

/** A consumer, as the trail names it. */
export const consumerActor = ({
  consumerId,
  name,
}: Pick<ConsumerCaller, "consumerId" | "name">): RoboticsTrailEntry["actor"] => ({
  kind: "robotics_consumer",
  id: consumerId,
  name,
});
