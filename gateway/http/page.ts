/**
 * How every long list is read: by the ids of its things. Lists that grow at their end come oldest first, after
 * `since_id`; lists whose newest thing matters come newest first, before `before_id`.
 */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { queryId, queryNumber } from "./query-number.ts";

const limit = queryNumber({ least: 1, most: BOUNDS.listed })
  .default(BOUNDS.listedUnlessAsked)
  .meta({
    // Told again for the document, which otherwise leaves it out of what is read from text.
    override: { default: BOUNDS.listedUnlessAsked },
    description: "At most so many; a page may be shorter although there are more.",
  });

/** Query parameters of a list that comes oldest first. */
export const pageAfterQuery = {
  since_id: queryNumber({ least: 0 })
    .default(0)
    .meta({ override: { default: 0 }, description: "Only what comes after this id." }),
  limit,
};

/** Query parameters of a list that comes newest first. */
export const pageBeforeQuery = {
  before_id: queryId().optional().meta({ description: "Only what comes before this id." }),
  limit,
};

/** Query parameters of a trail: newest first for who looks back, oldest first after `since_id` for who follows it. */
export const pageOfTrailQuery = z
  .strictObject({
    since_id: queryNumber({ least: 0 })
      .optional()
      .meta({ description: "Only what comes after this id, oldest first; 0 reads from the beginning." }),
    before_id: queryId().optional().meta({ description: "Only what comes before this id, newest first." }),
    limit,
  })
  .refine(({ since_id, before_id }) => since_id === undefined || before_id === undefined, {
    path: ["before_id"],
    error: "Cannot be given together with since_id.",
  });

/** Query parameters of a station's events, which are counted by the version of their commit. */
export const pageAfterVersionQuery = {
  since_version: queryNumber({ least: 0 })
    .default(0)
    .meta({ override: { default: 0 }, description: "Only what comes after this version." }),
  limit,
};

/** Whether there is a further page, and how to ask for it. */
export const hasMoreAfter = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last one's id as `since_id`." });
export const hasMoreBefore = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last one's id as `before_id`." });
export const hasMoreOfTrail = z.boolean().meta({
  description:
    "Whether there are more: ask again with the last one's id, as `since_id` where that was given, otherwise as `before_id`.",
});
export const hasMoreAfterVersion = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last event's version as `since_version`." });
