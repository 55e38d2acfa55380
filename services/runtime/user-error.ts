/** The parts of a {@link UserError}, besides its sentence. */
interface UserErrorOptions {
  /** Stable snake_case code for programs, e.g. `port_taken`. */
  code: string;
  /** Process exit code, 1–255; 1 when left out. */
  exitCode?: number;
  /** The underlying error. Only the log shows it. */
  cause?: unknown;
}

/**
 * An error that a person can act on. A process prints `message`, which is one sentence, without a stack trace; `code`
 * is for programs. Every other error counts as unexpected, and the log has its details.
 */
export class UserError extends Error {
  override readonly name = "UserError";
  readonly code: string;
  readonly exitCode: number;

  constructor(sentence: string, options: UserErrorOptions) {
    super(sentence, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.exitCode = options.exitCode ?? 1;
  }
}

/** The `code` of any thrown value: of a UserError, of a system error (`EACCES`), or `unexpected`. */
export function errorCode(error: unknown): string {
  if (typeof error === "object" && error !== null && "code" in error && typeof error.code === "string") {
    return error.code;
  }
  return "unexpected";
}
