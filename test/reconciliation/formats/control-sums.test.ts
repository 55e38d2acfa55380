import { describe, expect, it } from "vitest";
import { RowCheck, SumsByKey } from "../../../services/reconciliation/formats/control-sums.ts";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";

describe("SumsByKey", () => {
  it("adds up by all parts of the key, and reports a new key", () => {
    const sums = new SumsByKey<"batch" | "currency">();
    expect(sums.add({ batch: "1", currency: "EUR" }, 5n)).toBe(true);
    expect(sums.add({ batch: "1", currency: "EUR" }, -7n)).toBe(false);
    expect(sums.add({ batch: "1", currency: "CHF" }, 1n)).toBe(true);
    expect(sums.add({ batch: '1","EUR', currency: "" }, 9n)).toBe(true);
    expect([...sums.entries()].map(([, minor]) => minor)).toEqual([-2n, 1n, 9n]);
    expect(sums.get({ batch: "1", currency: "EUR" })).toBe(-2n);
    expect(sums.get({ batch: "2", currency: "EUR" })).toBeUndefined();
  });

  it("refuses a file with more keys than the limit", () => {
    const sums = new SumsByKey<"batch">();
    for (let batch = 0; batch < FORMAT_LIMITS.controlGroups; batch += 1) sums.add({ batch: String(batch) }, 1n);
    expect(sums.add({ batch: "0" }, 1n)).toBe(false);
    expect(() => sums.add({ batch: "one more" }, 1n)).toThrow(expect.objectContaining({ code: "too_large" }));
  });
});

describe("RowCheck", () => {
  it("gives a total for a row whose gross and fee do not add up to its net, and none for other rows", () => {
    const check = new RowCheck();
    const amounts = { position: 3, currency: "EUR", grossMinor: 100n, feeMinor: -5n };
    expect([...check.check({ ...amounts, netMinor: 95n })]).toEqual([]);
    expect([...check.check({ ...amounts, netMinor: 96n })]).toEqual([
      {
        type: "total",
        total: { name: "gross less fees of line 3", currency: "EUR", statedMinor: 96n, computedMinor: 95n },
      },
    ]);
  });
});
