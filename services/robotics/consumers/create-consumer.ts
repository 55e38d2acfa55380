import { requirePermission } from "../../bus/messages/caller.ts";
import type { createConsumer } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { personActor, recordRoboticsTrail } from "../../db/robotics-trail.ts";
import type { RoboticsDeps } from "../deps.ts";
import { ROBOTICS_LIMITS } from "../limits.ts";
import { countConsumers, insertConsumer } from "../sql/consumers.ts";
import { lockFilial } from "../sql/filials.ts";
import { consumerOnWire } from "./consumer-wire.ts";
import { mintCredential } from "./credential.ts";

/** Refuses with `permission_denied`, `not_found` (the filial) or `conflict` (it has as many as it can have). */
export async function create(
  { database }: Pick<RoboticsDeps, "database">,
  { caller, filialId, name, mode }: RequestOf<typeof createConsumer>,
): Promise<ReplyOf<typeof createConsumer>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const { credential, hash } = mintCredential();
  const consumer = await database.begin(async (sql) => {
    // Whoever else adds one waits here, so that the count holds.
    if ((await lockFilial(sql, { organizationId, filialId })) === undefined) {
      throw new RefusedError({ code: "not_found" });
    }
    if ((await countConsumers(sql, filialId)) >= ROBOTICS_LIMITS.consumersPerFilial) {
      const detail = `A filial has at most ${ROBOTICS_LIMITS.consumersPerFilial} robotics consumers.`;
      throw new RefusedError({ code: "conflict", detail });
    }
    const row = await insertConsumer(sql, { organizationId, filialId, name, mode, credentialHash: hash });
    await recordRoboticsTrail(sql, {
      organizationId,
      actor: personActor(caller),
      action: "robotics_consumer_created",
      subject: { kind: "robotics_consumer", id: row.consumer_id },
      data: { filial_id: filialId, name, mode },
    });
    return row;
  });
  return { consumer: consumerOnWire(consumer), credential };
}
