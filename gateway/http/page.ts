/**
 * How a client reads a long list page by page: by the ids of its entries. Some lists come oldest first, after
 * `since_id`. Lists whose newest entry matters most come newest first, before `before_id`. Also the numbers in a query.
 */
import { z } from "zod";
import type { StationState } from "../../machines/station/state.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { firstPage } from "../../services/bus/page.ts";
import type { HandlerDeps } from "./handler-context.ts";
import { idSchema } from "./shared-schemas.ts";

const DIGITS = /^\d+$/;

/** The error text of a number in a query. An id has no upper bound that a client needs to know. */
function numberError(least: number, most: number | undefined): string {
  const bounds = most === undefined ? `, at least ${least}` : `, ${least} to ${most}`;
  return `Must be a whole number in decimal digits${bounds}.`;
}

function digitsToNumber(value: unknown): unknown {
  if (typeof value !== "string" || !DIGITS.test(value)) return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/**
 * A whole number in plain decimal digits. The schema refuses other texts that JavaScript reads as a number (`1e2`,
 * ` 5`, `0x10`, the empty text): a wrong cursor of a client must not become a different valid cursor.
 */
export function queryNumber(bounds: { readonly least: number; readonly most?: number }) {
  const { least, most } = bounds;
  const error = numberError(least, most);
  const upTo = most ?? Number.MAX_SAFE_INTEGER;
  return z.preprocess(digitsToNumber, z.int({ error }).min(least, { error }).max(upTo, { error }));
}

export const queryId = () => queryNumber({ least: 1 });

const limit = queryNumber({ least: 1, most: BOUNDS.listed })
  .default(BOUNDS.listedUnlessAsked)
  .meta({
    // Repeats the default: the OpenAPI document leaves out that of a schema that preprocesses its input.
    override: { default: BOUNDS.listedUnlessAsked },
    description: "The most that one page carries. A page may be shorter although there are more; `has_more` shows it.",
  });

/** Query parameters of a list that comes oldest first. */
export const pageAfterQuery = {
  since_id: queryNumber({ least: 0 })
    .default(0)
    .meta({
      override: { default: 0 },
      description:
        "Only what comes after this id. Take it from the page before: its last id, or `through_id` where it has one. 0, the default, begins with the oldest.",
    }),
  limit,
};

/** Query parameters of a list that comes newest first. */
export const pageBeforeQuery = {
  before_id: queryId()
    .optional()
    .meta({ description: "Only what comes before this id: the last id of the page before. Left out: the newest." }),
  limit,
};

/** Query parameter of an audit log. */
const auditLogSearchQuery = {
  search: z.string().min(1).max(BOUNDS.searchCharacters).optional().meta({
    description:
      "Only entries whose actor's name, action, subject or data contain this, in upper or lower case; an underscore is the same as a space. One page goes through a part of a long log, so it may be empty although there are more.",
  }),
};

/** Query parameters of an audit log that is read newest first. */
export const pageBeforeOfAuditLog = {
  ...auditLogSearchQuery,
  before_id: queryId()
    .optional()
    .meta({ description: "Only what comes before this id, newest first: `through_id` of the page before." }),
  limit,
};

/** Query parameters of an audit log: newest first, or oldest first after `since_id` for a client that follows it. */
export const pageOfAuditLogQuery = z
  .strictObject({
    since_id: queryNumber({ least: 0 }).optional().meta({
      description:
        "Only what comes after this id, oldest first: `through_id` of the page before. 0 begins with the oldest.",
    }),
    ...pageBeforeOfAuditLog,
  })
  .refine(({ since_id, before_id }) => since_id === undefined || before_id === undefined, {
    path: ["before_id"],
    params: { code: "does_not_fit" },
    error: "Cannot be given together with since_id.",
  });

/** Query parameters of a station's events, which are counted by the version of their commit. */
export const pageAfterVersionQuery = {
  since_version: queryNumber({ least: 0 })
    .default(0)
    .meta({
      override: { default: 0 },
      description:
        "Only what comes after this version: the version of the last event of the page before. 0, the default, begins with the oldest.",
    }),
  limit,
};

/** Whether there is a further page, and how to ask for it. */
export const hasMoreAfter = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last one's id as `since_id`." });
export const hasMoreBefore = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last one's id as `before_id`." });
export const moreOfAuditLog = {
  has_more: z.boolean().meta({
    description:
      "Whether there are more: ask again with `through_id`, as `since_id` where that was given, otherwise as `before_id`.",
  }),
  through_id: idSchema.nullable().meta({ description: "The last entry that this page went through; null at the end." }),
};
export const moreOfAuditLogJson = (throughId: number | null) => ({
  has_more: throughId !== null,
  through_id: throughId,
});
export const hasMoreAfterVersion = z
  .boolean()
  .meta({ description: "Whether there are more: ask again with the last event's version as `since_version`." });

/**
 * The first entries of a page from the bus: as many as one answer can carry, at least one. An entry may be longer in
 * the answer than on the bus. The server could cut off a slow client's answer that exceeds `BOUNDS.listedBytes`.
 */
export function pageOnWire<T>(
  entries: readonly T[],
  hasMore: boolean,
): { readonly page: T[]; readonly hasMore: boolean } {
  const { page, hasMore: isCut } = firstPage(entries, entries.length);
  return { page, hasMore: hasMore || isCut };
}

/**
 * Reads the stations of one list from the replica, and decodes each station once, also when many entries are about it:
 * hundreds of decodes would delay the requests of all other clients. Throws `replica_stale`.
 */
export function stationsOfList({ station }: Pick<HandlerDeps, "station">): HandlerDeps["station"] {
  const decoded = new Map<number, StationState | undefined>();
  return (stationId) => {
    if (!decoded.has(stationId)) decoded.set(stationId, station(stationId));
    return decoded.get(stationId);
  };
}
