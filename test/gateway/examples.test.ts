/** Every example of the OpenAPI document fits its schema. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { OPENAPI_FILE } from "../../gateway/api/meta/pages.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Node = { readonly [name: string]: Json };

const document = JSON.parse(readFileSync(OPENAPI_FILE, "utf8")) as Json;
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addFormat("decimal", true);
ajv.addSchema(document as object, "openapi");

interface Example {
  readonly pointer: string;
  readonly value: Json;
}

const isNode = (value: Json | undefined): value is Node =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The examples of schemas (`examples`, a list) and of media types (`example`, or `examples` by name), with their schema. */
function examplesBelow(value: Json, pointer = ""): Example[] {
  if (Array.isArray(value)) return value.flatMap((each, nth) => examplesBelow(each as Json, `${pointer}/${nth}`));
  if (!isNode(value)) return [];
  const { examples, example, schema } = value;
  const found: Example[] = [];
  if (Array.isArray(examples)) found.push(...examples.map((each) => ({ pointer, value: each as Json })));
  if (schema !== undefined) {
    const at = `${pointer}/schema`;
    if (example !== undefined) found.push({ pointer: at, value: example });
    if (isNode(examples))
      found.push(
        ...Object.values(examples).flatMap((each) =>
          isNode(each) ? [{ pointer: at, value: each["value"] ?? null }] : [],
        ),
      );
  }
  const inside = Object.entries(value).filter(([name]) => name !== "example" && name !== "examples");
  return [...found, ...inside.flatMap(([name, each]) => examplesBelow(each, `${pointer}/${escape(name)}`))];
}

const escape = (token: string): string => token.replaceAll("~", "~0").replaceAll("/", "~1");

const EXAMPLES = examplesBelow(document);

describe("the examples of the OpenAPI document", () => {
  test("more than fifty exist, also one of an issue with its evidence", () => {
    expect(EXAMPLES.length).toBeGreaterThan(50);
    const issue = EXAMPLES.find(({ pointer }) => pointer === "/components/schemas/Issue");
    expect(issue?.value).toMatchObject({
      evidence: { registered: { amount: "12.50" }, asserted: { amount: "12.40" } },
    });
  });

  test("each of them fits its schema", () => {
    const broken = EXAMPLES.flatMap(({ pointer, value }) => {
      const check = ajv.compile({ $ref: `openapi#${encodeURI(pointer)}` });
      return check(value) ? [] : [{ pointer, value, errors: check.errors }];
    });
    expect(broken).toEqual([]);
  });
});
