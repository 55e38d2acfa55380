/** The id by which a request is found in the log: the client's own when it is a sane one, else a new one. */
import { randomBytes } from "node:crypto";
import { LIMITS } from "../limits.ts";

/** Different for each process, so that ids of several gateways never meet. */
const PREFIX = randomBytes(6).toString("base64url");
let count = 0;

export function newRequestId(): string {
  count += 1;
  return `${PREFIX}-${count.toString(36)}`;
}

/** Letters, digits and a few marks, bounded: it goes into a header and the log as it is. */
export function isSaneRequestId(id: string): boolean {
  return id.length > 0 && id.length <= LIMITS.requestIdCharacters && /^[\w.:/+=-]+$/.test(id);
}

export function requestIdFrom(header: string): string {
  return isSaneRequestId(header) ? header : newRequestId();
}
