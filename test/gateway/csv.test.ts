/** CSV that a spreadsheet opens as data, and never as a formula. */
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
  ])("a cell %j: written as %j", (cell, written) => {
    expect(csvRow([cell])).toBe(`${written}\r\n`);
  });

  test("cells with quotes, commas or line breaks: quoted; null: an empty cell", () => {
    expect(csvRow(['a,"b"', "c\nd", null, 7, true])).toBe('"a,""b""","c\nd",,7,true\r\n');
  });

  test("a spreadsheet that splits the row at semicolons or tabs: finds no formula in it", () => {
    const piece = fc.constantFrom(";", "\t", "\n", "\r", ",", '"', "'", " ", "=", "+", "-", "@", "＝", "a", "1");
    fc.assert(
      fc.property(fc.array(fc.string({ unit: piece }), { minLength: 1 }), (cells) => {
        const [, ...divided] = csvRow(cells).split(/[;\t\r\n]/);
        expect(divided.filter((part) => /^["\s]*[=+\-@＝＋－＠]/u.test(part))).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  test("a row that is parsed again: the same cells, except for the mark before a possible formula", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" }), { minLength: 2 }), (cells) => {
        const [read] = parse(csvRow(cells), { record_delimiter: "\r\n", relax_column_count: true });
        const unmarked = (text: string): string => text.replaceAll("'", "");
        expect(read?.map(unmarked)).toEqual(cells.map(unmarked));
      }),
    );
  });
});
