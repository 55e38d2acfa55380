import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SANDBOX_COLUMNS } from "../../../services/reconciliation/formats/dictionaries/sandbox-columns.ts";
import { StatementRefusedError } from "../../../services/reconciliation/formats/format.ts";
import { sandbox } from "../../../services/reconciliation/formats/sandbox.ts";
import { STATEMENT_COLUMNS } from "../../../services/sandbox-provider/payments.ts";
import { collected } from "./chunks.ts";
import { linesOf, parseSample, parseText, problemsOf, sampleText } from "./samples.ts";

describe("the sandbox provider's statement", () => {
  it("gives a line for each paid payment, in the exponent of its currency", async () => {
    const records = await parseSample(sandbox, "sandbox/statement.csv");
    expect(
      linesOf(records).map((line) => [line.providerReference, line.merchantReference, line.amountMinor, line.currency]),
    ).toEqual([
      ["pay_one", "int_1", 1_250n, "EUR"],
      ["pay_two", "int_2", 1_250n, "JPY"],
      ["pay_three", "int_3", 1_250n, "KWD"],
    ]);
    expect(linesOf(records)[0]).toMatchObject({
      position: 2,
      kind: "payment",
      account: "acct_1",
      bookedOn: "2026-11-01",
      occurredAt: "2026-11-01T10:00:00.000Z",
      details: { line: "1" },
    });
    expect(problemsOf(records)).toEqual(["5 amount: 12.505 has more decimals than EUR has (2)."]);
  });

  it("has the columns that the provider writes", () => {
    expect(SANDBOX_COLUMNS.entries[0]?.required).toEqual(STATEMENT_COLUMNS);
  });

  it("damage throws nothing but a refusal", async () => {
    const text = (await collected(sampleText("sandbox/statement.csv"))).join("");
    await fc.assert(
      fc.asyncProperty(fc.nat(text.length), fc.string({ maxLength: 5 }), async (at, what) => {
        const damaged = text.slice(0, at) + what + text.slice(at + what.length);
        const outcome = await parseText(sandbox, damaged).catch((error: unknown) => error);
        if (!Array.isArray(outcome)) expect(outcome).toBeInstanceOf(StatementRefusedError);
      }),
    );
  });

  it("refuses another header, and is detected by its own", async () => {
    await expect(parseText(sandbox, "id,amount\n1,2\n")).rejects.toMatchObject({ code: "unknown_header" });
    expect(sandbox.detect(`${STATEMENT_COLUMNS.join(",")}\r\n`)).toBe(true);
    expect(sandbox.detect("Date,Amount\n")).toBe(false);
  });
});
