/** What every handler gets, what it answers, and how it refuses. */
import { z } from "zod";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";

export interface SandboxDeps {
  readonly database: Database;
  readonly log: Log;
  readonly key: Buffer;
  /** SHA-256 of the text of the key that opens accounts. */
  readonly installationKeyHash: Buffer;
  readonly decidesAfterMs: number;
  readonly callbackOrigin: string;
  /** The certificate that is trusted for callbacks, beside the authorities of Node. */
  readonly certificateFile: string | undefined;
  /** The URL of a payment's guest page. Known once the server listens. */
  readonly guestUrl: (paymentId: string) => string;
  /** When the newest POST came, by `performance.now()`: the rows that it writes may be due at once. */
  readonly activity: { lastPostAtMs: number };
}

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

/**
 * Throws `ApiError` 422 `invalid_request` naming each field; a field that the schema does not have is refused as well.
 */
export function parsed<TSchema extends z.ZodType>(schema: TSchema, value: unknown): z.infer<TSchema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.map((issue) => ({ field: issue.path.join("."), detail: issue.message }));
  throw new ApiError(422, "invalid_request", "The request is not what this API documents.", errors);
}

/** Text that PostgreSQL can store. */
export const printableText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\0]*$/, "no NUL");

export const emptyBodySchema = z.strictObject({});
