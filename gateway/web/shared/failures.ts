/** What a call that did not succeed answers, and what pages have to say about each. */
import type { ErrorBody, ErrorCode } from "./operations.ts";

/** What can go wrong before an answer is there. */
export type NoAnswerCode = "offline" | "no_answer" | "answer_unreadable";
export type FailureCode = ErrorCode | NoAnswerCode;

export interface Failure extends Partial<Omit<ErrorBody, "code" | "detail">> {
  readonly ok: false;
  readonly code: FailureCode;
  /** The service's own sentence in English, for people who look for a cause; pages show `error-texts.ts`. */
  readonly detail: string;
  /** The HTTP status; 0 without an answer. */
  readonly httpStatus: number;
  readonly retryAfterMs: number | null;
}

/** What a page says about a failure. */
export interface ErrorText {
  readonly sentence: string;
  readonly next: string;
}
export type ErrorTexts = Readonly<Record<FailureCode, ErrorText>>;
