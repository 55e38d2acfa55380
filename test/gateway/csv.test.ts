/** CSV that a spreadsheet opens as data. */
import { parse } from "csv-parse/sync";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { csvRow } from "../../gateway/http/exported-file.ts";

describe("a row of CSV", () => {
  test.each([
    ["=1+1", "'=1+1"],
    ["+49 30 1", "'+49 30 1"],
    ["-cmd", "'-cmd"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["＝1", "'＝1"],
    ["-12.50", "-12.50"],
    ["12.50", "12.50"],
    ["a=b", "a=b"],
    ["a;-5", "a;'-5"],
    ["a;=1+1", "a;'=1+1"],
    ["a; @SUM(A1)", "a; '@SUM(A1)"],
    ["a\t=1+1", "a\t'=1+1"],
    ["a\n+cmd", '"a\n\'+cmd"'],
    ['a;"=1+1', '"a;""\'=1+1"'],
    ["a - b; c = d", "a - b; c = d"],
  ])("writes %s as %s", (cell, written) => {
    expect(csvRow([cell])).toBe(`${written}\r\n`);
  });

  test("quotes the separators of cells and rows, and leaves null empty", () => {
    expect(csvRow(['a,"b"', "c\nd", null, 7, true])).toBe('"a,""b""","c\nd",,7,true\r\n');
  });

  test("divided by semicolons or tabs, as spreadsheets in other languages do: contains no formula", () => {
    const piece = fc.constantFrom(";", "\t", "\n", "\r", ",", '"', "'", " ", "=", "+", "-", "@", "＝", "a", "1");
    fc.assert(
      fc.property(fc.array(fc.string({ unit: piece }), { minLength: 1 }), (cells) => {
        const [, ...divided] = csvRow(cells).split(/[;\t\r\n]/);
        expect(divided.filter((part) => /^["\s]*[=+\-@＝＋－＠]/u.test(part))).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  test("read again: has the same cells, except for the mark of those that could be formulas", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" }), { minLength: 2 }), (cells) => {
        const [read] = parse(csvRow(cells), { record_delimiter: "\r\n", relax_column_count: true });
        const unmarked = (text: string): string => text.replaceAll("'", "");
        expect(read?.map(unmarked)).toEqual(cells.map(unmarked));
      }),
    );
  });
});
