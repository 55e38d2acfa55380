/** What the owner is told of the past: one payment's timeline, a station's events, and who changed what. */
import type { z } from "zod";
import { getTimeline, listStationEvents } from "../../../services/bus/messages/audit.ts";
import { listRegistryEvents } from "../../../services/bus/messages/registry.ts";
import { toTimestamp } from "../../contract/shared.ts";
import type { registryEventsQuerySchema, stationEventsQuerySchema } from "../../contract/timeline.ts";
import { ok, type SessionHandler } from "../context.ts";
import { eventDataWire, stationEventWire } from "../event-wire.ts";
import { ownStation } from "../own-station.ts";

/** A foreign payment is `not_found`. */
export const getOwnTimeline: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const timeline = await deps.bus.call(getTimeline, { caller, intentId: context.id("intent_id") });
  return ok({
    intent_id: timeline.intentId,
    station_id: timeline.stationId,
    status: timeline.status,
    summary: timeline.summary,
    money_moved: timeline.moneyMoved,
    entries: timeline.entries.map(({ atMs, type, actor, sentence, moneyMoved, data }) => ({
      at: toTimestamp(atMs),
      type,
      actor,
      sentence,
      money_moved: moneyMoved,
      data: eventDataWire(data),
    })),
  });
};

export const listOwnStationEvents: SessionHandler<undefined, z.infer<typeof stationEventsQuerySchema>> = async (
  context,
) => {
  const { caller, deps, query } = context;
  const { stationId } = ownStation(context);
  const { since_version: sinceVersion, limit } = query;
  const { events, hasMore } = await deps.bus.call(listStationEvents, { caller, stationId, sinceVersion, limit });
  return ok({ events: events.map(stationEventWire), has_more: hasMore });
};

export const listOwnEvents: SessionHandler<undefined, z.infer<typeof registryEventsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, limit } = query;
  const { events, hasMore } = await deps.bus.call(listRegistryEvents, { caller, sinceId, limit });
  return ok({
    events: events.map(({ eventId, atMs, actor, action, subject, data }) => ({
      event_id: eventId,
      at: toTimestamp(atMs),
      actor,
      action,
      subject,
      data,
    })),
    has_more: hasMore,
  });
};
