/** The API's definition of a mapping and the one on the bus have the same content. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { definitionJson, definitionOf, definitionSchema } from "../../gateway/api/reconciliation/mapping-json.ts";
import { ApiError } from "../../gateway/http/handler-context.ts";
import { csvMappingSchema } from "../../services/reconciliation/formats/csv/mapping.ts";

const DOCUMENT = readFileSync(join(import.meta.dirname, "../../docs/reconciliation.md"), "utf8");
const [, documented = ""] = /```json\n(.+?)```/s.exec(DOCUMENT) ?? [];

const EXAMPLE = definitionSchema.parse(definitionSchema.meta()?.examples?.[0]);
const EVERY_AMOUNT = [
  { rule: "signed", column: "a", money_in: "negative" },
  { rule: "debit_credit", debit_column: "a", credit_column: "b" },
  { rule: "direction", column: "a", direction_column: "b", money_in: ["in"], money_out: ["out"] },
  { rule: "affix", column: "a", money_in: ["CR"], money_out: ["DR"] },
] as const;

describe("the definition of a mapping", () => {
  it.each([
    ["of the API page", EXAMPLE],
    ["of docs/reconciliation.md", definitionSchema.parse(JSON.parse(documented))],
  ])("%s: fits the schema of the service", (_name, definition) => {
    expect(csvMappingSchema.safeParse(definitionOf(definition)).success).toBe(true);
  });

  it.each(EVERY_AMOUNT)("the amount rule $rule: read back as it was sent", (amount) => {
    const references = { column: "r", extract: { pattern: "A(\\d+)", ignore_case: true } };
    const sent = definitionSchema.parse({
      ...EXAMPLE,
      amount: { ...amount },
      skip: [{ row_begins_with: "Sum" }, { column: "a", is: [""] }],
      fee: { column: "f", sign: "cost_is_negative" },
      net: { column: "n" },
      tip: { column: "t" },
      value_on: { column: "v" },
      booked_on: { column: "d", time_column: "e" },
      provider_reference: references,
      payment_reference: references,
      merchant_reference: references,
      payout_reference: references,
      terminal: references,
      account: references,
    });
    expect(definitionJson(definitionOf(sent))).toEqual({ ...sent, trim: true, units: "major" });
  });

  it("the words that a file uses for a kind: not changed", () => {
    const words = { camelCase: "payment", snake_case: "refund", Ä_ö: "fee" } as const;
    const sent = { ...EXAMPLE, kind: { column: "Art", words } };
    expect(definitionJson(definitionOf(sent)).kind).toEqual({ column: "Art", words });
  });

  it("a column name of spaces: refused", () => {
    expect(() => definitionOf({ ...EXAMPLE, booked_on: { column: "  " } })).toThrow(ApiError);
  });
});
