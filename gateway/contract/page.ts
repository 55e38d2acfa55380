/**
 * How every long list is read: by the ids of its things. Lists that grow at their end come oldest first, after
 * `since_id`; lists whose newest thing matters come newest first, before `before_id`.
 */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";

const limit = z.coerce
  .number()
  .int()
  .min(1)
  .max(BOUNDS.listed)
  .default(BOUNDS.listedUnlessAsked)
  .meta({ description: "At most so many; a page may be shorter although there are more." });

/** Query parameters of a list that comes oldest first. */
export const pageAfterQuery = {
  since_id: z.coerce.number().int().min(0).default(0).meta({ description: "Only what comes after this id." }),
  limit,
};

/** Query parameters of a list that comes newest first. */
export const pageBeforeQuery = {
  before_id: z.coerce.number().int().positive().optional().meta({ description: "Only what comes before this id." }),
  limit,
};

/** Query parameters of a station's events, which are counted by the version of their commit. */
export const pageAfterVersionQuery = {
  since_version: z.coerce.number().int().min(0).default(0).meta({ description: "Only what comes after this version." }),
  limit,
};

/** Whether there is a further page, and how to ask for it. */
export const hasMoreAfter = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last one's id as `since_id`." });
export const hasMoreBefore = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last one's id as `before_id`." });
export const hasMoreAfterVersion = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last event's version as `since_version`." });
