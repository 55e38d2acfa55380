/** The code of each field error, which programs and pages read. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type FieldError, FOR_FIELD_ERRORS, fieldErrors } from "../../services/bus/field-errors.ts";

const schema = z.strictObject({
  name: z.string().min(1).max(3).optional(),
  code: z.string().min(2).optional(),
  kind: z.enum(["a", "b"]).optional(),
  count: z.int().min(1).max(9).multipleOf(2).optional(),
  list: z.array(z.string()).max(1).optional(),
  mail: z.email().optional(),
  either: z.union([z.string(), z.boolean()]).optional(),
  needed: z.string(),
  fits: z
    .string()
    .refine((text) => text === "yes", { params: { code: "does_not_fit" } })
    .optional(),
  ruled: z
    .string()
    .refine((text) => text === "yes", { params: { code: "no such code" } })
    .optional(),
});

const found = (value: object): FieldError[] =>
  fieldErrors(schema.safeParse({ needed: "here", ...value }, FOR_FIELD_ERRORS).error?.issues ?? []);

describe("the code of a field error", () => {
  it.each<[object, Partial<FieldError>]>([
    [{ needed: undefined }, { pointer: "/needed", code: "missing" }],
    [{ name: "" }, { pointer: "/name", code: "missing" }],
    [{ name: "long" }, { code: "too_long", limit: 3 }],
    [{ code: "x" }, { code: "too_short", limit: 2 }],
    [{ list: ["a", "b"] }, { code: "too_long", limit: 1 }],
    [{ count: 0 }, { code: "too_small", limit: 1 }],
    [{ count: 10 }, { code: "too_large", limit: 9 }],
    [{ count: 3 }, { code: "wrong_format" }],
    [{ count: "3" }, { code: "wrong_type" }],
    [{ name: null }, { code: "wrong_type" }],
    [{ kind: "c" }, { code: "not_one_of" }],
    [{ mail: "nobody" }, { code: "wrong_format" }],
    [{ either: 1 }, { code: "invalid" }],
    [{ fits: "no" }, { code: "does_not_fit" }],
    [{ ruled: "no" }, { code: "invalid" }],
    [{ "a/b": 1 }, { pointer: "/a~1b", code: "unknown_field" }],
  ])("%j", (value, expected) => {
    const [first, ...others] = found(value);
    expect(first).toMatchObject({ ...expected, detail: expect.stringMatching(/^[A-Z].+\.$/) });
    expect(Object.hasOwn(first ?? {}, "limit")).toBe("limit" in expected);
    expect(others).toEqual([]);
  });
});
