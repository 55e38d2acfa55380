/** How a request of a device can fail: the service refused, or could not be reached. */

/** The service answered with an error body (contract, "Errors"). */
export class ServiceRefusal extends Error {
  override readonly name = "ServiceRefusal";
  readonly httpStatus: number;
  /** The stable code of the error body; `http_<status>` when the body carried none. */
  readonly code: string;
  /** The intent's status, where the refusal is about an intent. */
  readonly intentStatus: string | undefined;
  /** What `Retry-After` asked for. */
  readonly retryAfterMs: number | undefined;

  constructor(answer: {
    httpStatus: number;
    code: string;
    detail: string;
    intentStatus: string | undefined;
    retryAfterMs: number | undefined;
  }) {
    super(answer.detail);
    this.httpStatus = answer.httpStatus;
    this.code = answer.code;
    this.intentStatus = answer.intentStatus;
    this.retryAfterMs = answer.retryAfterMs;
  }
}

/** No answer came, or none of this service: whether the request took effect is unknown. */
export class ServiceUnreachable extends Error {
  override readonly name = "ServiceUnreachable";
}

/** A device that cannot go on by itself; `message` is one sentence for the person who set it up. */
export class DeviceStopped extends Error {
  override readonly name = "DeviceStopped";
}

/** Whether the same request may be sent again as it is. Reads and keyed reports are safe to repeat. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof ServiceUnreachable) return true;
  return (
    error instanceof ServiceRefusal && (error.httpStatus === 429 || error.httpStatus === 408 || error.httpStatus >= 500)
  );
}

/** A failure in one word for logs: the service's code, or that no answer came. */
export function failureReason(error: unknown): string {
  return error instanceof ServiceRefusal ? error.code : "unreachable";
}
