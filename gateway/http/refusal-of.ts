/** The one place that turns what was thrown into an answer. */
import { RefusedError, UnavailableError } from "../../services/bus/refusals.ts";
import type { ErrorCode } from "./errors.ts";
import { Refusal, type RefusalFacts } from "./handler-context.ts";

export interface RefusalOf {
  readonly code: ErrorCode;
  readonly facts: RefusalFacts;
  /** True when nobody meant to throw this: it goes to the log with its stack. */
  readonly isUnexpected: boolean;
}

export function refusalOf(error: unknown): RefusalOf {
  if (error instanceof Refusal) return { code: error.code, facts: error.facts, isUnexpected: false };
  if (error instanceof RefusedError) {
    const { code, ...facts } = error.refusal;
    return { code, facts, isUnexpected: false };
  }
  if (error instanceof UnavailableError) {
    return { code: "unavailable", facts: { retryAfterMs: 1_000 }, isUnexpected: false };
  }
  return { code: "internal_error", facts: {}, isUnexpected: true };
}
