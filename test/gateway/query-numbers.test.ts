/** Numbers in queries, of every list that there is: a cursor that a client has built wrongly must not read as another one. */
import { expect, it } from "vitest";
import { validate } from "../../gateway/http/parse-request.ts";
import { routes } from "../../gateway/routes.ts";

const NUMBERS = ["limit", "since_id", "before_id", "since_version", "station_id", "filial_id"];
const NOT_PLAIN = ["1e2", " 5", "5 ", "+5", "-1", "", " ", "0x10", "1.0", "1_000", "٥", "NaN", "9".repeat(20)];

const numeric = routes.flatMap(({ operationId, query }) => {
  if (query === undefined) return [];
  const keys = Object.keys((query as unknown as { shape: object }).shape).filter((key) => NUMBERS.includes(key));
  return keys.map((key) => ({ operationId, query, key }));
});

it("is one of a list's own names", () => {
  expect(new Set(numeric.map(({ key }) => key))).toEqual(new Set(NUMBERS));
});

it.each(numeric)("of $operationId is plain decimal digits: $key", ({ query, key }) => {
  expect(validate(query, { [key]: "5" })).toMatchObject({ [key]: 5 });
  expect(validate(query, { [key]: "007" })).toMatchObject({ [key]: 7 });
  for (const text of NOT_PLAIN) {
    let refused: unknown;
    try {
      validate(query, { [key]: text });
    } catch (error) {
      refused = error;
    }
    expect(refused, JSON.stringify(text)).toMatchObject({
      code: "invalid_request",
      facts: { errors: [{ pointer: `/${key}`, detail: expect.stringMatching(/^Must be .+\.$/) }] },
    });
  }
});

it("of lists may be left out", () => {
  for (const { query } of numeric) expect(() => validate(query, {})).not.toThrow();
});

it.each([
  ["limit", "501", "Must be a whole number in decimal digits, 1 to 500."],
  ["limit", "0", "Must be a whole number in decimal digits, 1 to 500."],
  ["limit", "many", "Must be a whole number in decimal digits, 1 to 500."],
  ["since_id", "-1", "Must be a whole number in decimal digits, at least 0."],
  ["before_id", "0", "Must be a whole number in decimal digits, at least 1."],
])("says what it takes itself: %s=%s", (key, text, detail) => {
  const ofKey = numeric.filter((number) => number.key === key);
  expect(ofKey.length).toBeGreaterThan(3);
  for (const { query, operationId } of ofKey) {
    let refused: unknown;
    try {
      validate(query, { [key]: text });
    } catch (error) {
      refused = error;
    }
    expect(refused, operationId).toMatchObject({ facts: { errors: [{ pointer: `/${key}`, detail }] } });
  }
});
