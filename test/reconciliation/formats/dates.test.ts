import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { calendarDate, isoInstant } from "../../../services/reconciliation/formats/dates.ts";

describe("calendarDate", () => {
  it("has the days that the calendar has, and no others", () => {
    const property = fc.property(
      fc.integer({ min: 1890, max: 2210 }),
      fc.integer({ min: -1, max: 14 }),
      fc.integer({ min: -1, max: 33 }),
      (year, month, day) => {
        const date = new Date(Date.UTC(year, month - 1, day));
        const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
        const isInRange = year >= 1900 && year <= 2199;
        expect(calendarDate(year, month, day)).toBe(exists && isInRange ? date.toISOString().slice(0, 10) : undefined);
      },
    );
    fc.assert(property, { numRuns: 2_000 });
  });

  it.each([
    [2024, 2, 29, "2024-02-29"],
    [2000, 2, 29, "2000-02-29"],
    [1900, 2, 29, undefined],
    [2026, 2, 29, undefined],
    [2026, 2, 30, undefined],
    [2026, 12, 31, "2026-12-31"],
    [Number.NaN, 1, 1, undefined],
    [2026, Number.NaN, 1, undefined],
    [2026, 1, Number.NaN, undefined],
    [2026, 1.5, 1, undefined],
  ])("of %d, %d, %d is %s", (year, month, day, date) => {
    expect(calendarDate(year, month, day)).toBe(date);
  });
});

describe("isoInstant", () => {
  it.each(["2026-03-10T10:00:00Z", "2026-03-10T10:00:00.5-12:00", "2026-03-10T10:00:00+14:00"])(
    "returns %s unchanged",
    (text) => {
      expect(isoInstant(text)).toBe(text);
    },
  );

  it.each([
    "2026-03-10T10:00:00",
    "2026-02-30T10:00:00Z",
    "2026-03-10T25:00:00Z",
    "2026-03-10T10:00:00+15:00",
    "2026-03-10T10:00:00-23:59",
    "2026-03-10T10:00:00+01:60",
  ])("finds no instant in %s", (text) => {
    expect(isoInstant(text)).toBeUndefined();
  });
});
