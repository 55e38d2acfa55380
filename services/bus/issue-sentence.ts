/**
 * The sentences of field errors, for the person who writes the client. `safeParse` gets this as `error`. A sentence
 * that a schema defines has priority.
 */
import type { z } from "zod";

type Issue = z.core.$ZodRawIssue;
type IssueOf<TCode extends Issue["code"]> = Extract<Issue, { readonly code: TCode }>;

/** One sentence for an issue. The compiler reports a code that is missing here. */
export function issueSentence(issue: Issue): string {
  if (issue.input === undefined && (issue.code === "invalid_type" || issue.code === "invalid_value")) {
    return "Is missing.";
  }
  switch (issue.code) {
    case "invalid_type":
      return `Must be ${TYPE_NAMES[issue.expected] ?? "of another type"}.`;
    case "invalid_value":
      return issue.values.length === 1
        ? `Must be ${String(issue.values[0])}.`
        : `Must be one of ${issue.values.map(shown).join(", ")}.`;
    case "too_small":
      return tooSmall(issue);
    case "too_big":
      return tooBig(issue);
    case "invalid_format":
      return `Must be ${FORMAT_NAMES[issue.format] ?? "written as the API's description says"}.`;
    case "not_multiple_of":
      return `Must be a multiple of ${issue.divisor}.`;
    case "unrecognized_keys":
      return NOT_A_FIELD;
    case "invalid_union":
      return "Fits none of the forms that are allowed here.";
    case "invalid_key":
      return "Has a name in it that is not allowed here.";
    case "invalid_element":
      return "Has something in it that is not allowed here.";
    case "custom":
      return "Is not allowed here.";
    default:
      return issue satisfies never;
  }
}

/** The sentence for a field that the schema does not have. */
export const NOT_A_FIELD = "Is not a field of this request.";

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

const FORMAT_NAMES: Readonly<Record<string, string>> = {
  email: "an e-mail address",
  url: "a URL",
  uuid: "a UUID",
  datetime: "a moment such as 2026-11-20T12:00:00.000Z",
};

/** An empty text would be invisible in a list. */
function shown(value: unknown): string {
  return value === "" ? "the empty text" : String(value);
}

function tooSmall({ origin, minimum, inclusive = true }: IssueOf<"too_small">): string {
  const unit = COUNTED[origin];
  if (unit === undefined) return `Must be ${inclusive ? "at least" : "more than"} ${minimum}.`;
  return minimum === 1 ? "Must not be empty." : `Must have at least ${minimum} ${unit}s.`;
}

function tooBig({ origin, maximum, inclusive = true }: IssueOf<"too_big">): string {
  const unit = COUNTED[origin];
  if (unit === undefined) return `Must be ${inclusive ? "at most" : "less than"} ${maximum}.`;
  return `Must have at most ${maximum} ${maximum === 1 ? unit : `${unit}s`}.`;
}

/** The units that a size bound counts. A number has no unit. */
const COUNTED: Readonly<Record<string, string>> = { string: "character", array: "element", set: "element" };
