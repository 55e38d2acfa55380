/**
 * Errors about the fields of a request. Programs and pages use the code, which is from a closed list. The sentence is
 * for the person who writes the client.
 */
import { z } from "zod";
import { issueSentence, NOT_A_FIELD } from "./issue-sentence.ts";

export const FIELD_ERROR_CODES = [
  /** The field is left out, or empty. */
  "missing",
  /** The request has no such field. */
  "unknown_field",
  "wrong_type",
  /** The value does not have the format in the API's description. */
  "wrong_format",
  /** The value is not one of the allowed values. */
  "not_one_of",
  /** For text or a list; `limit` is the least or the largest number of characters or elements. */
  "too_short",
  "too_long",
  /** For a number; `limit` is the least or the largest one. */
  "too_small",
  "too_large",
  /** The value has characters that are not text. */
  "not_text",
  "not_json",
  /** The value does not fit the other fields, or the thing that the request is about. */
  "does_not_fit",
  "unknown_currency",
  "unknown_time_zone",
  /** The currency cannot have this amount, or the amount has no currency. */
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
  /** Any other rule; the sentence has it. */
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

/** For the field `time_zone`. */
export const UNKNOWN_TIME_ZONE: FieldError = {
  pointer: "/time_zone",
  code: "unknown_time_zone",
  detail: "this is no IANA time zone; send a name such as Europe/Berlin, or UTC, and no offset",
};

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
    // Zod reports unknown fields on their object. A client needs the name of each field.
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

/** The compiler reports a code of Zod that is missing here. */
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

/** A custom rule of a schema has its code in `params`. */
function customCode(params: Readonly<Record<string, unknown>> | undefined): FieldErrorCode {
  const { data } = fieldErrorCodeSchema.safeParse(params?.["code"]);
  return data ?? "invalid";
}
