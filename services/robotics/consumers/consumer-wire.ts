import type { Consumer, ConsumerCaller } from "../../bus/messages/robotics.ts";
import type { ConsumerRow } from "../sql/consumers.ts";

export function consumerOnWire(row: ConsumerRow): Consumer {
  return {
    consumerId: row.consumer_id,
    filialId: row.filial_id,
    name: row.name,
    mode: row.mode,
    status: row.status,
    createdAtMs: row.created_at.getTime(),
  };
}

export function callerOnWire(row: ConsumerRow): ConsumerCaller {
  return {
    consumerId: row.consumer_id,
    name: row.name,
    organizationId: row.organization_id,
    filialId: row.filial_id,
    mode: row.mode,
  };
}
