/** The sample files of the encodings: what is detected in each, and what decoding it gives. */
import { describe, expect, it } from "vitest";
import { readCsv } from "../../../../services/reconciliation/formats/csv/read-csv.ts";
import { detectEncoding, type Encoding } from "../../../../services/reconciliation/formats/decode.ts";
import { StatementRefusedError } from "../../../../services/reconciliation/formats/format.ts";
import { collected } from "../chunks.ts";
import { sampleBytes, sampleText } from "../samples.ts";

const HEADER = {
  accepts: (_columns: readonly string[], position: number) => position === 1,
  refusal: () => new StatementRefusedError("unknown_header", "The file is empty."),
};

async function bytesOf(sample: string): Promise<Uint8Array> {
  return new Uint8Array(Buffer.concat(await collected(sampleBytes(`csv/${sample}.csv`))));
}

async function rowsOf(sample: string, encoding: Encoding): Promise<readonly string[]> {
  const records = await collected(
    readCsv(sampleText(`csv/${sample}.csv`, encoding), { delimiter: undefined, header: HEADER }),
  );
  return records.map((record) => {
    if (record.type === "header") return record.header.columns.join("|");
    if (record.type === "row") return `${record.row.position}: ${record.row.fields.join("|")}`;
    if (record.type === "repeated_header") return `${record.position} header again`;
    return `${record.malformed.position}! ${record.malformed.reason}`;
  });
}

describe("the encoded samples", () => {
  it.each<[string, Encoding]>([
    ["utf-16be-without-mark", "utf-16be"],
    ["utf-16le-with-mark", "utf-16le"],
    ["utf-8-with-mark", "utf-8"],
    ["windows-1252-euro", "windows-1252"],
  ])("%s is detected as %s and gives the original text", async (sample, encoding) => {
    expect(detectEncoding(await bytesOf(sample))[0]?.encoding).toBe(encoding);
    expect(await rowsOf(sample, encoding)).toEqual(["Datum|Betrag", "2: 01.11.2026|5,00 €"]);
  });

  it.each([
    ["nul-bytes", "utf-8", "not_text"],
    ["windows-1252-euro", "utf-8", "not_text"],
    ["utf-16be-without-mark", "utf-8", "not_text"],
    ["cut-in-a-character", "utf-8", "truncated"],
  ] as const)("%s read as %s is refused as %s", async (sample, encoding, code) => {
    await expect(rowsOf(sample, encoding)).rejects.toMatchObject({ code });
  });

  it("nul-bytes has no candidate", async () => {
    expect(detectEncoding(await bytesOf("nul-bytes"))).toEqual([]);
  });

  it("broken-quotes: each broken quote makes only its own line malformed", async () => {
    const quotes = "A quote is in the wrong place or is never closed.";
    expect(await rowsOf("broken-quotes", "utf-8")).toEqual([
      "id|text|amount",
      `2! ${quotes}`,
      "3: 2|x|6",
      `4! ${quotes}`,
      '5: 4|a "b"|8',
      "6! The row has 4 fields, and the header has 3 columns.",
      "7! The row has 2 fields, and the header has 3 columns.",
      "8: 7|=1+1|10",
    ]);
  });
});
