/** The sentence about an invalid field: a plain one for every kind of issue. */
import { expect, it } from "vitest";
import { z } from "zod";
import { issueSentence } from "../../services/bus/issue-sentence.ts";

function sentence(schema: z.ZodType, value: unknown): string | undefined {
  return schema.safeParse(value, { error: issueSentence }).error?.issues[0]?.message;
}

it.each<[string, z.ZodType, unknown, string]>([
  ["missing", z.object({ name: z.string() }), {}, "Is missing."],
  ["missing from a list of words", z.object({ route: z.enum(["a", "b"]) }), {}, "Is missing."],
  ["text", z.string(), 5, "Must be text."],
  ["a number", z.number(), "5", "Must be a number."],
  ["a number of a query", z.coerce.number(), "five", "Must be a number."],
  ["a whole number", z.int(), 1.5, "Must be a whole number."],
  ["a list", z.array(z.string()), "a", "Must be a list."],
  ["an object", z.strictObject({}), [], "Must be an object."],
  ["a record", z.record(z.string(), z.unknown()), "a", "Must be an object."],
  ["another type", z.map(z.string(), z.string()), 5, "Must be of another type."],
  ["one word", z.literal("ok"), "no", "Must be ok."],
  ["one of several words", z.enum(["a", "b"]), "c", "Must be one of a, b."],
  ["one of several, with the empty one", z.enum(["", "b"]), "c", "Must be one of the empty text, b."],
  ["too small", z.int().min(1), 0, "Must be at least 1."],
  ["not positive", z.int().positive(), 0, "Must be more than 0."],
  ["too large", z.int().max(9), 10, "Must be at most 9."],
  ["not below", z.number().lt(9), 9, "Must be less than 9."],
  ["empty text", z.string().min(1), "", "Must not be empty."],
  ["too short", z.string().min(8), "a", "Must have at least 8 characters."],
  ["too long", z.string().max(2), "abc", "Must have at most 2 characters."],
  ["too many", z.array(z.int()).max(1), [1, 2], "Must have at most 1 element."],
  ["an address", z.email(), "a", "Must be an e-mail address."],
  ["a special format", z.base64(), "?", "Must be written as the API's description says."],
  ["a form with a sentence", z.string().regex(/a/, "Must hold an a."), "b", "Must hold an a."],
  ["a multiple", z.number().multipleOf(5), 6, "Must be a multiple of 5."],
  ["a field too many", z.strictObject({}), { a: 1 }, "Is not a field of this request."],
  ["no form of several", z.union([z.string(), z.int()]), true, "Fits none of the forms that are allowed here."],
  ["a name inside", z.record(z.string().max(1), z.int()), { ab: 1 }, "Has a name in it that is not allowed here."],
  ["an element inside", z.map(z.string(), z.object({ a: z.int() })), new Map([["k", 1]]), "Must be an object."],
  ["a rule", z.string().refine(() => false), "a", "Is not allowed here."],
])("%s", (_name, schema, value, words) => {
  expect(sentence(schema, value)).toBe(words);
});
