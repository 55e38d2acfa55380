/** What a handler answers, and how it refuses: loudly, with every field that is wrong. */
import { z } from "zod";

export interface Reply {
  readonly status: number;
  /** Becomes JSON. */
  readonly json?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: readonly { readonly field: string; readonly detail: string }[];

  constructor(
    status: number,
    code: string,
    sentence: string,
    errors: readonly { readonly field: string; readonly detail: string }[] = [],
  ) {
    super(sentence);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.errors = errors;
  }

  reply(): Reply {
    const { code, errors, message } = this;
    const error = { code, message, ...(errors.length === 0 ? {} : { errors }) };
    return { status: this.status, json: { error } };
  }
}

/** Throws `ApiError` 422 `invalid_request` naming each field; what is not asked for is refused as well. */
export function parsed<TSchema extends z.ZodType>(schema: TSchema, value: unknown): z.infer<TSchema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.map((issue) => ({ field: issue.path.join("."), detail: issue.message }));
  throw new ApiError(422, "invalid_request", "The request is not what this API documents.", errors);
}
