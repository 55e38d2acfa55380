/** One file defines the bounds. No contract and no message writes a bound as a number, and both refuse more than the bound. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { issueCodeBodySchema } from "../../gateway/api/backoffice/enrollment-codes.ts";
import { createFilialBodySchema } from "../../gateway/api/backoffice/filials.ts";
import { leaseBodySchema } from "../../gateway/api/cashier/leases.ts";
import { orderLinesBodySchema } from "../../gateway/api/cashier/orders.ts";
import { closeIssueBodySchema } from "../../gateway/api/reconciliation/issues.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { issueEnrollmentCode } from "../../services/bus/messages/enrollment-codes.ts";
import { createFilial } from "../../services/bus/messages/filials.ts";
import { closeIssue } from "../../services/bus/messages/issues.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
/** Zero and one do not count as bounds. They mean "not empty" or "from the first one on". */
const NUMERIC_BOUND = /\.(?:max|length|default)\(\s*\d|\.min\(\s*(?!(?:0|1)\s*\))\d/;

const lines = (count: number) => Array.from({ length: count }, () => ({ name: "Soup", quantity: 1 }));

describe("the bounds of what people and devices write", () => {
  it("bounds written as numbers: recognized", () => {
    for (const text of [".max(200)", ".min(12)", ".min(\n  30)", ".length(3)", ".default(50)", ".max(7 * 24)"])
      expect(text).toMatch(NUMERIC_BOUND);
    for (const text of [".min(1)", ".min(0)", ".max(BOUNDS.orderLines)", ".default(BOUNDS.listedUnlessAsked)"])
      expect(text).not.toMatch(NUMERIC_BOUND);
  });

  it("contracts and messages: none writes a bound as a number", () => {
    const files = globSync(["gateway/api/**/*.ts", "services/bus/messages/*.ts"], { cwd: CHECKOUT });
    expect(files.length).toBeGreaterThan(15);
    const withNumber = files.filter((file) =>
      NUMERIC_BOUND.test(readFileSync(join(CHECKOUT, file), "utf8").replaceAll(/\.default\(0\)|Math\.max\(/g, "")),
    );
    expect(withNumber).toEqual([]);
  });

  it("contract and message: both accept a value at the bound, and refuse one beyond it", () => {
    const caller = { userId: 1, name: "Ada", organizationId: 1, role: "owner" as const, permissions: [] };
    const longest = BOUNDS.nameCharacters;
    const { max } = BOUNDS.enrollmentCodeLifetimeMs;
    const accepts = (extra: number) => [
      createFilialBodySchema.safeParse({ name: "n".repeat(longest + extra) }).success,
      createFilial.request.safeParse({ caller, name: "n".repeat(longest + extra) }).success,
      issueCodeBodySchema.safeParse({ lifetime_seconds: max / 1_000 + extra }).success,
      issueEnrollmentCode.request.safeParse({ caller, deviceId: 1, lifetimeMs: max + extra }).success,
      orderLinesBodySchema.safeParse({
        lines: lines(BOUNDS.orderLines + extra).map((line) => ({ ...line, unit_amount: "1.00" })),
      }).success,
      openOrder.request.safeParse({
        caller,
        stationId: 1,
        lines: lines(BOUNDS.orderLines + extra).map((line) => ({ ...line, unitAmountMinor: "100" })),
      }).success,
      closeIssueBodySchema.safeParse({ reason: "r".repeat(BOUNDS.reasonCharacters + extra) }).success,
      closeIssue.request.safeParse({ caller, issueId: 1, reason: "r".repeat(BOUNDS.reasonCharacters + extra) }).success,
      leaseBodySchema.safeParse({ lifetime_seconds: BOUNDS.leaseLifetimeMs.max / 1_000 + extra }).success,
    ];
    expect(accepts(0)).toEqual(accepts(0).map(() => true));
    expect(accepts(1)).toEqual(accepts(1).map(() => false));
  });
});
