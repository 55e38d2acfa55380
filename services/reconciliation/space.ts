/**
 * Imports and runs in the background wait while the disk is below its reserve: what they write would take the space that
 * collections need. They continue when there is space again, and an interrupted import or run is always tried again.
 */
import type { Bus } from "../bus/connection.ts";
import { diskOf } from "../bus/disk-gate.ts";
import { isShort } from "../runtime/disk-watch.ts";

/** Whether the disk that the process of this connection watches is below its reserve now. */
export function shortOfSpace({ nc }: Pick<Bus, "nc">): () => boolean {
  return () => isShort(diskOf(nc), "reserve");
}

const DISK_FULL = "53100";
/** Whether PostgreSQL had no space for a statement; the statement has stored nothing. */
export const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === DISK_FULL;
