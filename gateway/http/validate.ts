/** Bodies and queries against their schemas; each field at fault is named by a JSON pointer (design §4, "bodies"). */
import type { z } from "zod";
import { issueSentence, NOT_A_FIELD } from "../../services/bus/issue-sentence.ts";
import type { FieldError } from "../../services/bus/refusals.ts";
import { LIMITS } from "../limits.ts";
import { Refusal } from "./handler-context.ts";

export function validate<TSchema extends z.ZodType>(schema: TSchema, value: unknown): z.infer<TSchema> {
  const parsed = schema.safeParse(value, { error: issueSentence });
  if (parsed.success) return parsed.data;
  throw new Refusal("invalid_request", { errors: fieldErrors(parsed.error) });
}

function fieldErrors(error: z.ZodError): FieldError[] {
  return error.issues
    .flatMap((issue): FieldError[] => {
      // Unknown fields are reported on the object that has them; a client wants to know which.
      if (issue.code === "unrecognized_keys") {
        return issue.keys.map((key) => ({ pointer: pointerTo([...issue.path, key]), detail: NOT_A_FIELD }));
      }
      return [{ pointer: pointerTo(issue.path), detail: issue.message }];
    })
    .slice(0, LIMITS.fieldErrors);
}

function pointerTo(path: readonly PropertyKey[]): string {
  return path.map((token) => `/${String(token).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** A query as an object of strings; a name given twice is refused, because which one counts would be a guess. */
export function parseQuery(query: string): Record<string, string> {
  const values: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of new URLSearchParams(query)) {
    if (name in values) {
      throw new Refusal("invalid_request", {
        errors: [{ pointer: pointerTo([name]), detail: "Given more than once." }],
      });
    }
    values[name] = value;
  }
  return values;
}
