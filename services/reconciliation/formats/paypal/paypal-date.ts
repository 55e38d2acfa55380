/** `2026/01/06 00:00:30 -0800`, as PayPal's reports have it. */
import { dateFormat, type ReadDate, readDate } from "../csv/declared-dates.ts";

const FORMATS = ["YYYY/MM/DD HH:mm:ssZ", "YYYY/MM/DD HH:mm:ss"].flatMap((format) => dateFormat(format) ?? []);

export function paypalDate(text: string): ReadDate | undefined {
  return readDate(text.replace(/ ([+-]\d\d):?(\d\d)$/, "$1:$2"), FORMATS);
}
