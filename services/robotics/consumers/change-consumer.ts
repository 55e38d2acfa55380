/** Changes to a consumer: its name, whether it is let in, its credential. What it has open stays the owner's to cancel. */
import { requirePermission } from "../../bus/messages/caller.ts";
import type { changeConsumer, resetConsumerCredential } from "../../bus/messages/robotics.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { personActor, recordRoboticsTrail } from "../../db/robotics-trail.ts";
import type { RoboticsDeps } from "../deps.ts";
import { lockConsumer, setCredential, updateConsumer } from "../sql/consumers.ts";
import { consumerOnWire } from "./consumer-wire.ts";
import { mintCredential } from "./credential.ts";

/** A change to what it is already is none. Refuses with `permission_denied` or `not_found`. */
export async function change(
  { database }: Pick<RoboticsDeps, "database">,
  { caller, consumerId, name, status }: RequestOf<typeof changeConsumer>,
): Promise<ReplyOf<typeof changeConsumer>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const consumer = await database.begin(async (sql) => {
    // Waits for whatever the consumer is just accepting, and what it asks later sees the change.
    const row = await lockConsumer(sql, { organizationId, consumerId });
    if (row === undefined) throw new RefusedError({ code: "not_found" });
    const next = { name: name ?? row.name, status: status ?? row.status };
    const changed = {
      ...(next.name === row.name ? {} : { name: next.name }),
      ...(next.status === row.status ? {} : { status: next.status }),
    };
    if (Object.keys(changed).length === 0) return row;
    await recordRoboticsTrail(sql, {
      organizationId,
      actor: personActor(caller),
      action: "robotics_consumer_changed",
      subject: { kind: "robotics_consumer", id: consumerId },
      data: changed,
    });
    return await updateConsumer(sql, consumerId, next);
  });
  return { consumer: consumerOnWire(consumer) };
}

/** The old credential ends with this. Refuses with `permission_denied` or `not_found`. */
export async function resetCredential(
  { database }: Pick<RoboticsDeps, "database">,
  { caller, consumerId }: RequestOf<typeof resetConsumerCredential>,
): Promise<ReplyOf<typeof resetConsumerCredential>> {
  requirePermission(caller, "organization.manage");
  const { organizationId } = caller;
  const { credential, hash } = mintCredential();
  const consumer = await database.begin(async (sql) => {
    const row = await lockConsumer(sql, { organizationId, consumerId });
    if (row === undefined) throw new RefusedError({ code: "not_found" });
    await setCredential(sql, consumerId, hash);
    await recordRoboticsTrail(sql, {
      organizationId,
      actor: personActor(caller),
      action: "robotics_credential_reset",
      subject: { kind: "robotics_consumer", id: consumerId },
    });
    return row;
  });
  return { consumer: consumerOnWire(consumer), credential };
}
