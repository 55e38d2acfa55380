/** Typed prices become minor units exactly, or the error names them. The gateway never rounds. */
import { assert, bigInt, constantFrom, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { orderJson, orderLinesBodySchema, orderLinesOf } from "../../../gateway/api/cashier/orders.ts";
import { ApiError } from "../../../gateway/http/handler-context.ts";
import { formatAmount } from "../../../machines/currency.ts";
import type { Order } from "../../../services/bus/messages/orders.ts";

const line = (unit_amount: string, quantity = 1) => ({ name: "Soup", quantity, unit_amount });

const minor = (amount: string, currency: string) => {
  const [typed] = orderLinesOf({ lines: [line(amount)] }, currency);
  return typed !== undefined && "unitAmountMinor" in typed ? typed.unitAmountMinor : undefined;
};

function errorOf(lines: ReturnType<typeof line>[], currency: string): ApiError {
  try {
    orderLinesOf({ lines }, currency);
  } catch (error) {
    if (error instanceof ApiError) return error;
  }
  throw new Error("The lines were accepted.");
}

describe("the lines of an order, as a cashier types them", () => {
  it("prices: become minor units of the order's currency", () => {
    expect(minor("12.50", "EUR")).toBe("1250");
    expect(minor("12.5", "EUR")).toBe("1250");
    expect(minor("12", "EUR")).toBe("1200");
    expect(minor("0.07", "EUR")).toBe("7");
    expect(minor("1250", "JPY")).toBe("1250");
    expect(minor("1.25", "KWD")).toBe("1250");
    expect(minor("9999999999.99", "EUR")).toBe("999999999999");
  });

  it("prices with more decimals than the currency: refused, each named by its pointer", () => {
    const refusal = errorOf([line("100"), line("12.50"), line("1.5")], "JPY");
    expect(refusal.code).toBe("invalid_request");
    expect(refusal.facts.errors).toEqual([
      { pointer: "/lines/1/unit_amount", code: "not_of_currency", detail: "JPY has 0 decimals." },
      { pointer: "/lines/2/unit_amount", code: "not_of_currency", detail: "JPY has 0 decimals." },
    ]);
  });

  it("any price with any exponent: the same after a conversion to minor units and back", () => {
    assert(
      property(
        bigInt({ min: 0n, max: 999_999_999_999n }),
        constantFrom(["EUR", 1n], ["JPY", 100n], ["KWD", 1n] as const),
        (cents, [currency, divisor]) => {
          // The API accepts two decimals. Amounts in JPY have none, and the third decimal of KWD is zero.
          const amountMinor = currency === "KWD" ? cents * 10n : cents / divisor;
          expect(minor(formatAmount(amountMinor, currency), currency)).toBe(amountMinor.toString());
        },
      ),
    );
  });

  it("prices with a sign, an exponent, a blank or a third decimal: refused", () => {
    for (const odd of ["-1.00", "+1", "1e3", " 1", "1,50", "", ".5", "1.", "1.005", "12345678901", "0x10", "NaN"])
      expect(orderLinesBodySchema.safeParse({ lines: [line(odd)] }).success, odd).toBe(false);
  });
});

describe("the JSON of an order", () => {
  it("has the total of each line", () => {
    const order: Order = {
      orderId: 42,
      orderDisplayNumber: 12,
      stationId: 1,
      status: "open",
      revision: 1,
      currency: "EUR",
      totalMinor: "2530",
      lines: [
        { name: "Soup", quantity: 3, unitAmountMinor: "810" },
        { name: "Bread", quantity: 1, unitAmountMinor: "100" },
      ],
      transaction: null,
      openedAtMs: Date.UTC(2026, 10, 20, 12),
    };
    expect(orderJson(order)).toMatchObject({
      total: "25.30",
      lines: [
        { unit_amount: "8.10", line_amount: "24.30" },
        { unit_amount: "1.00", line_amount: "1.00" },
      ],
      opened_at: "2026-11-20T12:00:00.000Z",
    });
  });
});
