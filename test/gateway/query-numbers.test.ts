/** Numbers in queries, of every list: a wrongly built cursor must not read as another one. */
import { expect, it } from "vitest";
import { validate } from "../../gateway/http/parse-request.ts";
import { routes } from "../../gateway/routes.ts";

const NUMBERS = ["limit", "since_id", "before_id", "since_version", "station_id", "filial_id"];
const NOT_PLAIN = ["1e2", " 5", "5 ", "+5", "-1", "", " ", "0x10", "1.0", "1_000", "٥", "NaN", "9".repeat(20)];

/** The parameters that some lists need. */
const REQUIRED: Record<string, string> = {
  account_id: "5",
  filial_id: "5",
  from_date: "2026-11-01",
  to_date: "2026-11-02",
  day: "2026-11-01",
  mode: "live",
  kind: "day",
};

/** The least that the query of an operation needs. */
function leastOf(query: { shape: Record<string, { safeParse: (value: undefined) => { success: boolean } }> }): object {
  const required = Object.entries(query.shape).filter(([, schema]) => !schema.safeParse(undefined).success);
  return Object.fromEntries(required.map(([key]) => [key, REQUIRED[key]]));
}

const numeric = routes.flatMap(({ operationId, query }) => {
  if (query === undefined) return [];
  const shaped = query as unknown as Parameters<typeof leastOf>[0];
  const keys = Object.keys(shaped.shape).filter((key) => NUMBERS.includes(key));
  return keys.map((key) => {
    // A cursor of two parts is accepted as a whole only.
    const pair = key === "since_id" && "since_day" in shaped.shape ? { since_day: "2026-11-01" } : {};
    return { operationId, query, key, least: leastOf(shaped), pair };
  });
});

it("the numeric names are those that lists have", () => {
  expect(new Set(numeric.map(({ key }) => key))).toEqual(new Set(NUMBERS));
});

it.each(numeric)("the numbers of $operationId are plain decimal digits: $key", ({ query, key, least, pair }) => {
  expect(validate(query, { ...least, ...pair, [key]: "5" })).toMatchObject({ [key]: 5 });
  expect(validate(query, { ...least, ...pair, [key]: "007" })).toMatchObject({ [key]: 7 });
  for (const text of NOT_PLAIN) {
    let refused: unknown;
    try {
      validate(query, { ...least, ...pair, [key]: text });
    } catch (error) {
      refused = error;
    }
    expect(refused, JSON.stringify(text)).toMatchObject({
      code: "invalid_request",
      facts: { errors: [{ pointer: `/${key}`, detail: expect.stringMatching(/^Must be .+\.$/) }] },
    });
  }
});

it("the numbers of lists may be left out", () => {
  for (const { query, least, operationId } of numeric) expect(() => validate(query, least), operationId).not.toThrow();
});

it.each([
  ["limit", "501", "Must be a whole number in decimal digits, 1 to 500."],
  ["limit", "0", "Must be a whole number in decimal digits, 1 to 500."],
  ["limit", "many", "Must be a whole number in decimal digits, 1 to 500."],
  ["since_id", "-1", "Must be a whole number in decimal digits, at least 0."],
  ["before_id", "0", "Must be a whole number in decimal digits, at least 1."],
])("names its accepted values: %s=%s", (key, text, detail) => {
  // A page of periods is shorter: each of them is counted from its lines.
  const ofKey = numeric.filter((number) => number.key === key && number.operationId !== "reconciliation_list_periods");
  expect(ofKey.length).toBeGreaterThan(3);
  for (const { query, operationId, least, pair } of ofKey) {
    let refused: unknown;
    try {
      validate(query, { ...least, ...pair, [key]: text });
    } catch (error) {
      refused = error;
    }
    expect(refused, operationId).toMatchObject({ facts: { errors: [{ pointer: `/${key}`, detail }] } });
  }
});
