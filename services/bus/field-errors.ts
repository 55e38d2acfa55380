/**
 * What is wrong with the fields of a request. Programs and pages decide by the code, which is from a closed list; the sentence is
 * for the person who writes the client.
 */
import { z } from "zod";
import { issueSentence, NOT_A_FIELD } from "./issue-sentence.ts";

export const FIELD_ERROR_CODES = [
  /** It is left out, or empty. */
  "missing",
  /** The request has no such field. */
  "unknown_field",
  "wrong_type",
  /** It is not written as the API's description says. */
  "wrong_format",
  /** It is none of the values that are allowed. */
  "not_one_of",
  /** Text or a list; `limit` says how many characters or elements it has at least or at most. */
  "too_short",
  "too_long",
  /** A number; `limit` is the least or the largest one. */
  "too_small",
  "too_large",
  /** It holds characters that are no text. */
  "not_text",
  "not_json",
  /** It does not fit the other fields, or the thing that they are about. */
  "does_not_fit",
  "unknown_currency",
  "unknown_time_zone",
  /** The currency cannot have this amount, or is not given with it. */
  "not_of_currency",
  /** An amount that the contract cannot carry. */
  "amount_too_large",
  /** The station's catalogue has no such item. */
  "not_in_catalogue",
  /** A period ends before it begins. */
  "ends_before_start",
  /** A period is longer than `limit` days. */
  "period_too_long",
  "wrong_password",
  /** Any other rule; the sentence says which. */
  "invalid",
] as const;
const fieldErrorCodeSchema = z.enum(FIELD_ERROR_CODES);
export type FieldErrorCode = z.infer<typeof fieldErrorCodeSchema>;

export const fieldErrorSchema = z.object({
  /** JSON pointer (RFC 6901). */
  pointer: z.string(),
  code: fieldErrorCodeSchema,
  limit: z.number().optional(),
  detail: z.string(),
});
export type FieldError = z.infer<typeof fieldErrorSchema>;

/** For `safeParse`, whose issues become field errors. */
export const FOR_FIELD_ERRORS = { error: issueSentence, reportInput: true } as const;

/** The JSON pointer of a path (RFC 6901). */
export const pointerTo = (path: readonly PropertyKey[]): string =>
  path.map((token) => `/${String(token).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** Field errors of issues that were parsed with `FOR_FIELD_ERRORS`. */
export function fieldErrors(
  issues: readonly z.core.$ZodIssue[],
  pointerOf: (path: readonly PropertyKey[]) => string = pointerTo,
): FieldError[] {
  return issues.flatMap((issue): FieldError[] => {
    // Reported on the object that has them; a client wants to know which.
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => ({
        pointer: pointerOf([...issue.path, key]),
        code: "unknown_field",
        detail: NOT_A_FIELD,
      }));
    }
    return [{ pointer: pointerOf(issue.path), ...kindOf(issue), detail: issue.message }];
  });
}

type Kind = Pick<FieldError, "code" | "limit">;

/** A code of Zod that is missing here does not compile. */
function kindOf(issue: Exclude<z.core.$ZodIssue, z.core.$ZodIssueUnrecognizedKeys>): Kind {
  switch (issue.code) {
    case "invalid_type":
      return { code: issue.input === undefined ? "missing" : "wrong_type" };
    case "invalid_value":
      return { code: issue.input === undefined ? "missing" : "not_one_of" };
    case "too_small": {
      const limit = Number(issue.minimum);
      if (!isCounted(issue.origin)) return { code: "too_small", limit };
      return limit === 1 ? { code: "missing" } : { code: "too_short", limit };
    }
    case "too_big":
      return { code: isCounted(issue.origin) ? "too_long" : "too_large", limit: Number(issue.maximum) };
    case "invalid_format":
    case "not_multiple_of":
      return { code: "wrong_format" };
    case "custom":
      return { code: customCode(issue.params) };
    case "invalid_union":
    case "invalid_key":
    case "invalid_element":
      return { code: "invalid" };
    default:
      return issue satisfies never;
  }
}

const isCounted = (origin: string): boolean => origin === "string" || origin === "array" || origin === "set";

/** A rule of a schema names its code in `params`. */
function customCode(params: Readonly<Record<string, unknown>> | undefined): FieldErrorCode {
  const { data } = fieldErrorCodeSchema.safeParse(params?.["code"]);
  return data ?? "invalid";
}
