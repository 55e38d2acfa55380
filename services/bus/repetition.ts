/**
 * Whether a request may be carried out a second time. A caller that hears nothing sends its request to another process
 * (`exchange.ts`), while the first one may still carry it out later. So each operation says what a second execution does.
 */
export const REPETITIONS = [
  /** It changes nothing more, and its answer is as good as the first one: reads, and writes under a key of their own. */
  "repeatable",
  /** It would do something twice, or undo what happened in between: one process alone may carry it out. */
  "once",
  /** `repeatable` with the request's `idempotencyKey`, `once` without it. */
  "repeatable_with_key",
] as const;
export type Repetition = (typeof REPETITIONS)[number];

/** Resolves to whether this process may carry out the request; of all processes that ask under one id, one may. */
export type ClaimRequest = (requestId: string) => Promise<boolean>;

export function needsClaim(repetition: Repetition, request: unknown): boolean {
  if (repetition !== "repeatable_with_key") return repetition === "once";
  return (request as { readonly idempotencyKey?: unknown }).idempotencyKey === undefined;
}
