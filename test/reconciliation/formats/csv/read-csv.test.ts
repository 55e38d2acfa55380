import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  bindHeader,
  dictionaryRule,
  type HeaderDictionary,
} from "../../../../services/reconciliation/formats/csv/dictionary.ts";
import {
  type CsvOptions,
  type CsvRecord,
  findHeader,
  type HeaderRule,
  readCsv,
} from "../../../../services/reconciliation/formats/csv/read-csv.ts";
import { StatementRefusedError } from "../../../../services/reconciliation/formats/format.ts";
import { FORMAT_LIMITS } from "../../../../services/reconciliation/formats/limits.ts";
import { collected, dividedAt, oneChunk } from "../chunks.ts";

const FIRST_LINE: HeaderRule = {
  accepts: (_columns, position) => position === 1,
  refusal: () => new StatementRefusedError("unknown_header", "The file is empty."),
};
const COMMAS: CsvOptions = { delimiter: ",", header: FIRST_LINE };

const read = (text: string, options = COMMAS): Promise<CsvRecord[]> => collected(readCsv(oneChunk(text), options));

/** "3: a|b" for a row, "3! reason" for a malformed row, "3 header again" for a row that repeats the header. */
async function outline(text: string, options = COMMAS): Promise<string[]> {
  return (await read(text, options)).flatMap((record) => {
    if (record.type === "header") return [];
    if (record.type === "row") return [`${record.row.position}: ${record.row.fields.join("|")}`];
    if (record.type === "repeated_header") return [`${record.position} header again`];
    return [`${record.malformed.position}! ${record.malformed.reason}`];
  });
}
const QUOTES = "A quote is in the wrong place or is never closed.";

describe("readCsv", () => {
  it("divides rows at the delimiter, and fields in quotes hold delimiters, quotes and line breaks", async () => {
    const text = 'a,b\n1,"x, ""y"""\n2,"one\ntwo"\n3,z\n';
    expect(await outline(text)).toEqual(['2: 1|x, "y"', "3: 2|one\ntwo", "5: 3|z"]);
  });

  it.each([
    ["\n", "LF"],
    ["\r\n", "CRLF"],
    ["\r", "CR"],
  ])("numbers physical lines that end in %j (%s), also in fields with quotes", async (ending) => {
    const text = ["a,b", '1,"one', "", 'three"', "2,x", "", "3,y"].join(ending);
    expect(await outline(text)).toEqual([`2: 1|one${ending}${ending}three`, "5: 2|x", "7: 3|y"]);
  });

  it("keeps text that a spreadsheet would run as a formula", async () => {
    const formulas = ["=1+1", "@SUM(A1)", "+49 30", "-2", "=cmd|' /C calc'!A0"];
    const [, ...rows] = await read(`a\n${formulas.join("\n")}\n`);
    expect(rows.map((record) => (record.type === "row" ? record.row.fields[0] : record))).toEqual(formulas);
  });

  it("continues after a row with another count of fields, and names both counts", async () => {
    expect(await outline("a,b\n1\n2,x\n3,x,y\n4,z\n")).toEqual([
      "2! The row has 1 fields, and the header has 2 columns.",
      "3: 2|x",
      "4! The row has 3 fields, and the header has 2 columns.",
      "5: 4|z",
    ]);
  });

  it.each<[string, string, readonly string[]]>([
    ["inside a field", 'a,b\n1,5" pizza\n2,x\n3,y\n', [`2! ${QUOTES}`, "3: 2|x", "4: 3|y"]],
    ["at the start of a field", 'a,b\n1,"x\n2,y\n3,z\n', [`2! ${QUOTES}`, "3: 2|y", "4: 3|z"]],
    ["twice, with rows between", 'a,b\n1,"x\n2,y\n3,"z\n4,w\n', [`2! ${QUOTES}`, "3: 2|y", `4! ${QUOTES}`, "5: 4|w"]],
    ["after a closed field", 'a,b\n1,"x"y\n2,z\n', [`2! ${QUOTES}`, "3: 2|z"]],
    ["on the last line", 'a,b\n1,x\n2,"', ["2: 1|x", `3! ${QUOTES}`]],
  ])("a stray quote %s: only its line is malformed", async (_name, text, rows) => {
    expect(await outline(text)).toEqual(rows);
  });

  it("a quote that is never closed: only its line is malformed, and the rows after it are read", async () => {
    const rows = Array.from({ length: 3 * FORMAT_LIMITS.recordLines }, (_, index) => `${index},x`);
    const records = await outline(`a,b\n0,"\n${rows.join("\n")}\n`);
    expect(records).toEqual([`2! ${QUOTES}`, ...rows.map((row, index) => `${index + 3}: ${row.replace(",", "|")}`)]);
  });

  it("refuses a line that has no end, without storing all of it", async () => {
    let chunks = 0;
    async function* endless(): AsyncIterable<string> {
      yield "a,b\n";
      for (;;) {
        chunks += 1;
        yield "x".repeat(FORMAT_LIMITS.chunkCharacters);
      }
    }
    await expect(collected(readCsv(endless(), COMMAS))).rejects.toMatchObject({ code: "line_too_long" });
    expect(chunks * FORMAT_LIMITS.chunkCharacters).toBeLessThanOrEqual(2 * FORMAT_LIMITS.lineCharacters);
  });

  it("skips empty lines and all lines above the header", async () => {
    const header: HeaderRule = { ...FIRST_LINE, accepts: ([first]) => first === "a" };
    const text = '\ufeffAccount;"1" 2"\nsep=;\n\na;b\n\n1;x\n;\n';
    const records = await read(text, { delimiter: undefined, header });
    expect(records[0]).toEqual({ type: "header", header: { position: 4, columns: ["a", "b"], delimiter: ";" } });
    expect(await outline(text, { delimiter: undefined, header })).toEqual(["6: 1|x"]);
  });

  it("skips rows without text, and the end-of-file character of DOS", async () => {
    expect(await outline('a,b\n1,x\n,\n" ",\n2,y\na,c\n\u001a')).toEqual(["2: 1|x", "5: 2|y", "6: a|c"]);
    expect(await outline("a,b\n\u001a\n")).toEqual(["2! The row has 1 fields, and the header has 2 columns."]);
  });

  it("reports a row that repeats the header, also with a byte order mark, and with one delimiter more or less", async () => {
    const text = 'a,b,\n1,x,\n\ufeff"a",b\n2,y,\na,b,\na\na,b,c\n3,z,\n';
    const [, , ...rows] = await outline(text);
    expect(rows).toEqual([
      "4: 2|y|",
      "5 header again",
      "6! The row has 1 fields, and the header has 3 columns.",
      "7: a|b|c",
      "8: 3|z|",
    ]);
    expect((await outline(text)).slice(0, 2)).toEqual(["2: 1|x|", "3 header again"]);
  });

  const few = (line: number, fields: number, columns: number): string =>
    `${line}! The row has ${fields} fields, and the header has ${columns} columns.`;
  it.each<[string, string, readonly string[]]>([
    ["behind the header only", 'a;b;\n1;x\n2;"y\ny"\n3;\n;4;z\n', ["2: 1|x", "3: 2|y\ny", "5: 3|", few(6, 3, 3)]],
    [
      "behind the rows only",
      'a;b\n1;x;\n2;"y\ny";\n3;z\n4;z;w\n',
      ["2: 1|x|", "3: 2|y\ny|", few(5, 2, 2), few(6, 3, 2)],
    ],
    ["behind one row", "a;b\n1;x\n2;y;\n", ["2: 1|x", few(3, 3, 2)]],
    ["behind no row, and the last column has a name", "a;b;c\n1;x\n", [few(2, 2, 3)]],
  ])("the first row decides whether a delimiter %s is an empty field or none", async (_name, text, rows) => {
    expect(await outline(text, { ...COMMAS, delimiter: ";" })).toEqual(rows);
  });

  it("treats a comma at the end of a row as a delimiter: an earlier comma may be a decimal comma", async () => {
    expect(await outline("amount,fee,note\n17,00,1,\n")).toEqual([few(2, 4, 3)]);
  });

  it("refuses a header of more columns than any statement has", async () => {
    const wide = (columns: number): string => Array.from({ length: columns }, (_, index) => `c${index}`).join(",");
    expect(await outline(`${wide(FORMAT_LIMITS.columns)}\n1\n`)).toHaveLength(1);
    await expect(read(`${wide(FORMAT_LIMITS.columns + 1)}\n1\n`)).rejects.toMatchObject({
      code: "too_large",
      message: `Line 1 has ${FORMAT_LIMITS.columns + 1} columns, and the header of a statement has ${FORMAT_LIMITS.columns} at most; upload the file as the provider made it.`,
    });
  });

  it("searches a bounded count of lines for the header", async () => {
    const header: HeaderRule = { ...FIRST_LINE, accepts: ([first]) => first === "a" };
    const preamble = "x\n".repeat(FORMAT_LIMITS.preambleLines);
    await expect(read(`${preamble}a,b\n`, { delimiter: ",", header })).rejects.toMatchObject({
      code: "unknown_header",
    });
    await expect(read("", COMMAS)).rejects.toMatchObject({ code: "unknown_header" });
  });

  it.each([",", ";", "\t", "|"])("finds the delimiter %j in the header row alone", async (delimiter) => {
    const text = `a${delimiter}b\n1,2;3|4\t5${delimiter}\n`;
    const [header] = await read(text, { delimiter: undefined, header: FIRST_LINE });
    expect(header).toMatchObject({ header: { delimiter } });
  });

  it("refuses a header that two delimiters divide equally well", async () => {
    await expect(read("a;b,c\n", { delimiter: undefined, header: FIRST_LINE })).rejects.toMatchObject({
      code: "mapping_refused",
    });
  });

  it("gives rows of any width where there is no header", async () => {
    expect(await outline("RH,1\nFH\n", { delimiter: ",", header: "none" })).toEqual(["1: RH|1", "2: FH"]);
  });

  it("gives the same records for each division of the text into chunks, and throws refusals only", async () => {
    const part = fc.constantFrom('"', ",", "\n", "\r", "\r\n", "x", "ä€", '""', "=1+1", "1,2\n", '"a"');
    await fc.assert(
      fc.asyncProperty(
        fc.array(part, { maxLength: 60 }),
        fc.array(fc.nat(), { maxLength: 6 }),
        async (parts, places) => {
          const text = `a,b\n${parts.join("")}`;
          const whole = await read(text);
          expect(await collected(readCsv(dividedAt(text, places), COMMAS))).toEqual(whole);
          // Rows come in the order of their lines.
          const positions = whole.flatMap((record) => (record.type === "row" ? [record.row.position] : []));
          expect(positions).toEqual(positions.toSorted((first, second) => first - second));
        },
      ),
      { numRuns: 150 },
    );
  });
});

const SHOP: HeaderDictionary<"date" | "amount" | "fee"> = {
  report: "the shop's report",
  version: 1,
  entries: [
    {
      name: "English",
      columns: { date: ["Date"], amount: ["Amount", "Total"], fee: ["Fee"] },
      required: ["date", "amount"],
    },
    { name: "French", columns: { date: ["Date d'achat"], amount: ["Montant"] }, required: ["date", "amount"] },
  ],
};

describe("bindHeader", () => {
  it("finds columns by name, in any order and with others beside them", () => {
    const row = { position: 2, fields: ["x", " 5.00 ", "2026-11-01"], raw: "" };
    const bound = bindHeader(["New", "amount ", "DATE"], SHOP);
    expect(bound?.entry.name).toBe("English");
    expect(bound?.value(row, "amount")).toBe("5.00");
    expect(bound?.value(row, "fee")).toBe("");
    expect([...(bound?.details(row) ?? [])]).toEqual([["New", "x"]]);
    expect(bound?.unknownColumns).toEqual(["New"]);
  });

  it("treats different characters for a space or an apostrophe as equal", () => {
    expect(bindHeader(["Date\u00a0d’achat", "Montant"], SHOP)?.entry.name).toBe("French");
  });

  it("matches the whole row: parts of two entries are no header", () => {
    expect(bindHeader(["Date", "Montant"], SHOP)).toBeUndefined();
  });

  it("takes the first of a column's names that the header has", () => {
    const row = { position: 2, fields: ["2026-11-01", "1.00", "2.00"], raw: "" };
    const bound = bindHeader(["Date", "Total", "Amount"], SHOP);
    expect(bound?.value(row, "amount")).toBe("2.00");
    expect([...(bound?.details(row) ?? [])]).toEqual([["Total", "1.00"]]);
  });

  it("refuses a repeated known column, and lets an unknown or empty name repeat", () => {
    expect(() => bindHeader(["Date", "Amount", "amount"], SHOP)).toThrow(StatementRefusedError);
    expect(bindHeader(["Date", "Amount", "", "", "X", "X"], SHOP)?.entry.name).toBe("English");
  });

  it("refuses an unknown header with its unknown and its missing columns", async () => {
    const options = { delimiter: undefined, header: dictionaryRule(SHOP) };
    await expect(read("Period\nDate;Betrag;Fee\n1;2;3\n", options)).rejects.toThrow(
      'The file has no known header of the shop\'s report: it has unknown columns ("Betrag") and it lacks "Amount"; store a mapping for this header and import the file with it.',
    );
  });

  it("findHeader finds the known header in the beginning of a file", () => {
    const options = { delimiter: undefined, header: dictionaryRule(SHOP) };
    expect(findHeader("x\nDate;Amount", options)).toMatchObject({ position: 2, delimiter: ";" });
    expect(findHeader("Date;Betrag\n", options)).toBeUndefined();
  });
});
