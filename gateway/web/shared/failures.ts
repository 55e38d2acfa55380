/** The failure of a call, and the texts that pages show for it. */
import type { ErrorBody, ErrorCode } from "./operations.ts";

/** Failures without a readable answer. */
export type NoAnswerCode = "offline" | "no_answer" | "answer_unreadable";
type FailureCode = ErrorCode | NoAnswerCode;

export interface Failure extends Partial<Omit<ErrorBody, "code" | "detail">> {
  readonly ok: false;
  readonly code: FailureCode;
  /** The service's own sentence in English. Pages show `error-texts.ts`, and this only with a `conflict`. */
  readonly detail: string;
  /** The HTTP status; 0 without an answer. */
  readonly httpStatus: number;
  readonly retryAfterMs: number | null;
}

/** The text that a page shows for a failure. */
export interface ErrorText {
  readonly sentence: string;
  readonly next: string;
}
export type ErrorTexts = Readonly<Record<FailureCode, ErrorText>>;
