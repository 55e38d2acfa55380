/** Local times whose time zone is named in a column beside them. */
import { OFFSET } from "../dates.ts";
import { ZONE_OFFSETS } from "../dictionaries/zone-offsets.ts";
import { instantOf, isTimeZone } from "../local-time.ts";
import { instantOfDate, type ReadDate } from "./declared-dates.ts";

const NAMED_OFFSET = new RegExp(`^(?:GMT|UTC)(?<offset>${OFFSET})$`, "i");

/**
 * By the offset that the text has, by the zone that the row names, or by the declared one; undefined when the row names a
 * zone that is not known, because the declared one may be another.
 */
export function zonedInstant(read: ReadDate, zone: string, declared: string | undefined): string | undefined {
  if (read.time === undefined || read.offset !== undefined || zone === "") return instantOfDate(read, declared);
  const offset = ZONE_OFFSETS[zone.toUpperCase()] ?? NAMED_OFFSET.exec(zone)?.groups?.["offset"];
  if (offset !== undefined) return `${read.date}T${read.time}${offset}`;
  return zone.includes("/") && isTimeZone(zone) ? instantOf(read.date, read.time, zone) : undefined;
}
