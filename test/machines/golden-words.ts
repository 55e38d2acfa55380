/** Where golden commits are kept, and the closed lists whose indexes they store. */
import { fileURLToPath } from "node:url";
import {
  ATTESTERS,
  END_REASONS,
  INTENT_STATES,
  REPORTED_OUTCOMES,
  ROUTES,
  UNCLEAR_REASONS,
} from "../../machines/payment-intent.ts";
import { DEVICE_STATUSES } from "../../machines/standing.ts";
import { CAPABILITIES, DEVICE_KINDS, ORDER_STATUSES } from "../../machines/station/state.ts";

/** A new word is added at the end: a stored index must always mean the same word. */
export const WORDS: Readonly<Record<string, readonly string[]>> = {
  ATTESTERS,
  CAPABILITIES,
  DEVICE_KINDS,
  DEVICE_STATUSES,
  UNCLEAR_REASONS,
  END_REASONS,
  INTENT_STATES,
  ORDER_STATUSES,
  REPORTED_OUTCOMES,
  ROUTES,
};

export function goldenFolder(version: number): string {
  return fileURLToPath(new URL(`golden/v${version}`, import.meta.url));
}
