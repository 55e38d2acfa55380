/** Which versions of nats-server this service runs on. */
import { UserError } from "../runtime/user-error.ts";

/**
 * From this release on a replicated stream never acknowledges two conditional appends, and `sync_interval: always` covers
 * everything that is acknowledged.
 */
export const OLDEST_NATS_SERVER = "2.12.0";

/** Throws UserError `nats_too_old` for the version that a connected server names; `server` as `host:port`. */
export function refuseOldServer(version: string, server: string): void {
  if (isNatsServerNewEnough(version)) return;
  throw new UserError(
    `The nats-server at ${server} (NATS_URL) has the version ${version || "unknown"}, and this service needs ${OLDEST_NATS_SERVER} or newer: upgrade it, or set NATS_URL to another one.`,
    { code: "nats_too_old" },
  );
}

/** Whether this version, such as `2.15.1` or `2.12.0-RC.1`, may be used. A text that is no version may not. */
export function isNatsServerNewEnough(version: string): boolean {
  const [have, least] = [version, OLDEST_NATS_SERVER].map((text) =>
    text.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0),
  );
  for (const [place, wanted] of (least ?? []).entries()) {
    const number = have?.[place] ?? 0;
    if (number !== wanted) return number > wanted;
  }
  return true;
}
