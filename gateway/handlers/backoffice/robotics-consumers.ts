/** The fleets that the owner lets in. A credential comes out once, when it was made. */
import type { z } from "zod";
import {
  type Consumer,
  changeConsumer,
  createConsumer,
  listConsumers,
  resetConsumerCredential,
} from "../../../services/bus/messages/robotics.ts";
import type {
  changeRoboticsConsumerBodySchema,
  createRoboticsConsumerBodySchema,
  roboticsConsumerSchema,
  roboticsConsumersQuerySchema,
} from "../../contract/robotics.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";

export const listOwnConsumers: SessionHandler<undefined, z.infer<typeof roboticsConsumersQuerySchema>> = async (
  context,
) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, limit, filial_id: filialId } = query;
  const { consumers, hasMore } = await deps.bus.call(listConsumers, { caller, filialId, sinceId, limit });
  return ok({ robotics_consumers: consumers.map(consumerWire), has_more: hasMore });
};

/** A foreign filial is `not_found`. */
export const createOwnConsumer: SessionHandler<z.infer<typeof createRoboticsConsumerBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { filial_id: filialId, name, mode } = body;
  const { consumer, credential } = await deps.bus.call(createConsumer, { caller, filialId, name, mode });
  return created({ robotics_consumer: consumerWire(consumer), credential });
};

export const changeOwnConsumer: SessionHandler<z.infer<typeof changeRoboticsConsumerBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { consumer } = await deps.bus.call(changeConsumer, { caller, consumerId: context.id("consumer_id"), ...body });
  return ok(consumerWire(consumer));
};

export const resetOwnConsumerCredential: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, consumerId: context.id("consumer_id") };
  const { consumer, credential } = await deps.bus.call(resetConsumerCredential, request);
  return ok({ robotics_consumer: consumerWire(consumer), credential });
};

function consumerWire(consumer: Consumer): z.infer<typeof roboticsConsumerSchema> {
  return {
    consumer_id: consumer.consumerId,
    filial_id: consumer.filialId,
    name: consumer.name,
    mode: consumer.mode,
    status: consumer.status,
    created_at: toTimestamp(consumer.createdAtMs),
  };
}
