/** What the owner is told of the past: one payment's timeline, a station's events, and who changed what. */
import type { z } from "zod";
import { getTimeline, listStationEvents } from "../../../services/bus/messages/audit.ts";
import { listEvents, type RegistryEventEntry } from "../../../services/bus/messages/events.ts";
import type { stationEventsQuerySchema } from "../../contract/timeline.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import type { pageOfTrailQuery } from "../../http/page.ts";
import { actorJson, toTimestamp } from "../../http/shared-schemas.ts";
import { eventDataWire, stationEventWire } from "../event-wire.ts";

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
      actor: actorJson(actor),
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
  const { stationId } = await ownStation(context);
  const { since_version: sinceVersion, limit } = query;
  const { events, hasMore } = await deps.bus.call(listStationEvents, { caller, stationId, sinceVersion, limit });
  return ok({ events: events.map(stationEventWire), has_more: hasMore });
};

export const listOwnEvents: SessionHandler<undefined, z.infer<typeof pageOfTrailQuery>> = async (context) => {
  const { caller, deps, query } = context;
  const { since_id: sinceId, before_id: beforeId, limit } = query;
  const { events, hasMore } = await deps.bus.call(listEvents, { caller, sinceId, beforeId, limit });
  return ok({ events: events.map(eventWire), has_more: hasMore });
};

/** An event's data has the wire's names already. */
function eventWire(event: RegistryEventEntry) {
  const { eventId, atMs, actor, action, subject, data } = event;
  return { event_id: eventId, at: toTimestamp(atMs), actor: actorJson(actor), action, subject, data };
}
