import { describe, expect, it } from "vitest";
import {
  areAmbiguous,
  dateFormat,
  instantOfDate,
  readDate,
  zonedInstant,
} from "../../../../services/reconciliation/formats/csv/declared-dates.ts";
import { instantOf } from "../../../../services/reconciliation/formats/local-time.ts";

const read = (text: string, ...formats: readonly string[]) =>
  readDate(
    text,
    formats.flatMap((format) => dateFormat(format) ?? []),
  );

describe("readDate", () => {
  it.each([
    ["31.01.2026", "DD.MM.YYYY", "2026-01-31", undefined],
    ["1.2.2026", "D.M.YYYY", "2026-02-01", undefined],
    ["01/31/2026", "MM/DD/YYYY", "2026-01-31", undefined],
    ["20260131", "YYYYMMDD", "2026-01-31", undefined],
    ["31/01/26 9:05", "DD/MM/YY H:mm", "2026-01-31", "09:05:00"],
    ["2026-01-31T23:59:59.5", "YYYY-MM-DDTHH:mm:ss", "2026-01-31", "23:59:59.5"],
    ["1/31/2026 12:05 AM", "M/D/YYYY h:mm A", "2026-01-31", "00:05:00"],
    ["1/31/2026 12:05 PM", "M/D/YYYY h:mm A", "2026-01-31", "12:05:00"],
    ["7 sept. 2026", "D MMM YYYY", "2026-09-07", undefined],
    ["1 août 2026", "D MMM YYYY", "2026-08-01", undefined],
    ["3. März 2026", "D. MMM YYYY", "2026-03-03", undefined],
  ])("reads %s by %s", (text, format, date, time) => {
    expect(read(text, format)).toEqual({ date, time, offset: undefined });
  });

  it.each([
    ["30.02.2026", "DD.MM.YYYY"],
    ["13/25/2026", "DD/MM/YYYY"],
    ["1.2.2026", "DD.MM.YYYY"],
    ["2026-01-31 24:00", "YYYY-MM-DD HH:mm"],
    ["1/31/2026 13:05 PM", "M/D/YYYY hh:mm A"],
    ["7 jui. 2026", "D MMM YYYY"],
    ["7 jux 2026", "D MMM YYYY"],
    ["", "DD.MM.YYYY"],
    ["2026-01-31 12:00+15:00", "YYYY-MM-DD HH:mmZ"],
    ["2026-01-31 12:00-99:99", "YYYY-MM-DD HH:mmZ"],
    ["2026-01-31 12:00+01:60", "YYYY-MM-DD HH:mmZ"],
  ])("reads no date in %s by %s", (text, format) => {
    expect(read(text, format)).toBeUndefined();
  });

  it("takes the first format that fits", () => {
    expect(read("31.01.2026 10:00", "DD.MM.YYYY", "DD.MM.YYYY HH:mm")).toMatchObject({ time: "10:00:00" });
  });
});

describe("dateFormat", () => {
  it.each(["DD.MM", "DD.MM.YYYY.DD", "YYYY-MM-DD HH", "YYYY-MM-DD ss", "DD.MM.YYYY h:mm", "(a+)+", "Q", ""])(
    "refuses %j",
    (format) => {
      expect(dateFormat(format)).toBeUndefined();
    },
  );

  it("finds formats that exchange day and month", () => {
    expect(areAmbiguous(["DD/MM/YYYY", "MM/DD/YYYY"])).toBe(true);
    expect(areAmbiguous(["D/M/YYYY", "MM/DD/YYYY"])).toBe(true);
    expect(areAmbiguous(["DD.MM.YYYY", "D.M.YYYY", "MM/DD/YYYY", "D MMM YYYY"])).toBe(false);
  });
});

describe("instants", () => {
  it("have the offset of the zone that a column names, when a clock can have this offset", () => {
    const local = { date: "2026-07-01", time: "12:00:00", offset: undefined };
    expect(zonedInstant(local, "GMT-07:00", undefined)).toBe("2026-07-01T12:00:00-07:00");
    expect(zonedInstant(local, "UTC+14:00", undefined)).toBe("2026-07-01T12:00:00+14:00");
    expect(zonedInstant(local, "GMT+20:00", "Europe/Berlin")).toBeUndefined();
  });

  it("need an offset or a declared time zone", () => {
    const local = { date: "2026-07-01", time: "12:00:00", offset: undefined };
    expect(instantOfDate(local, undefined)).toBeUndefined();
    expect(instantOfDate(local, "Europe/Berlin")).toBe("2026-07-01T10:00:00.000Z");
    expect(instantOfDate({ ...local, offset: "+05:30" }, "Europe/Berlin")).toBe("2026-07-01T12:00:00+05:30");
    expect(instantOfDate({ ...local, time: undefined }, "Europe/Berlin")).toBeUndefined();
  });

  it("are unknown in the hour that the clock skips, and in the one that it repeats", () => {
    expect(instantOf("2026-03-29", "02:30:00", "Europe/Berlin")).toBeUndefined();
    expect(instantOf("2026-10-25", "02:30:00", "Europe/Berlin")).toBeUndefined();
    expect(instantOf("2026-10-25", "03:30:00", "Europe/Berlin")).toBe("2026-10-25T02:30:00.000Z");
  });
});
