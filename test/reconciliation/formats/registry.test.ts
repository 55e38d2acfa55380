import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import iconvLite from "iconv-lite";
import { describe, expect, it } from "vitest";
import { detectCandidates } from "../../../services/reconciliation/detection.ts";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";
import {
  detectFormats,
  STATEMENT_FORMATS,
  statementFormat,
} from "../../../services/reconciliation/formats/registry.ts";
import { oneChunk } from "./chunks.ts";
import { zipOf } from "./zip-writer.ts";

const SAMPLES = new URL("../samples/", import.meta.url);
/** The formats of each folder's samples. Some samples have no known format. */
const FORMATS_OF: Readonly<Record<string, readonly string[]>> = {
  adyen: ["adyen_settlement_details"],
  camt: ["camt.053", "camt.054"],
  mt940: ["mt940"],
  paypal: ["paypal_stl", "paypal_trr", "paypal_activity"],
  sandbox: ["sandbox"],
  stripe: ["stripe_payout_reconciliation", "stripe_activity"],
  sumup: ["sumup"],
};
const samples = Object.keys(FORMATS_OF).flatMap((folder) =>
  readdirSync(new URL(`${folder}/`, SAMPLES)).map((file) => `${folder}/${file}`),
);
const headOf = (sample: string): string => readFileSync(new URL(sample, SAMPLES), "utf8");
const sampleOf = (sample: string): Uint8Array => readFileSync(new URL(sample, SAMPLES));
const otherVersion = (): Uint8Array =>
  Buffer.from(headOf("camt/statement-v08.xml").replaceAll("camt.053.001.08", "camt.053.001.03"));
const namesOf = (head: string): readonly string[] => detectFormats(head).map(({ name }) => name);

it("the guide: names every format", () => {
  const guide = readFileSync(new URL("../../../docs/reconciliation.md", import.meta.url), "utf8");
  const [table = ""] = (guide.split("| format | file |\n")[1] ?? "").split("\n\n");
  const named = [...table.matchAll(/^\| (.*?) \|/gm)].flatMap(
    ([, cell = ""]) => cell.match(/(?<=`)[\w.]+(?=`)/g) ?? [],
  );
  expect(named).toEqual(STATEMENT_FORMATS.map(({ name }) => name));
});

describe("the candidates of a file", () => {
  it("the first candidate has the encoding in which the header is known", async () => {
    const text = readFileSync(new URL("sumup/de-2026.csv", SAMPLES), "utf8");
    for (const encoding of ["macintosh", "cp850"]) {
      const { formats, encodings } = await detectCandidates(oneChunk(iconvLite.encode(text, encoding)));
      expect([formats.map(({ name }) => name), encodings[0]?.encoding]).toEqual([["sumup"], encoding]);
    }
  });

  it.each<[string, Uint8Array, string, RegExp]>([
    ["a gzip", gzipSync("Date,Total\n"), "not_text", /^The file is compressed with gzip: unpack it/],
    ["a spreadsheet", Buffer.from("d0cf11e0a1b11ae100", "hex"), "not_text", /office program: store it as CSV/],
    ["a PDF", Buffer.from("%PDF-1.7\n"), "not_text", /^The file is a PDF: download the statement as CSV/],
    ["a camt.052", sampleOf("camt/report-052.xml"), "not_a_statement", /^A camt\.052 is an interim report/],
    ["a camt.053 of version 03", otherVersion(), "unsupported_version", /^The file is version 03 of camt\.053/],
    ["an MT942", sampleOf("mt940/interim-942.sta"), "not_a_statement", /^The file is an MT942/],
    ["a spreadsheet in a zip", zipOf([{ name: "[Content_Types].xml", content: "x" }]), "archive_refused", /as CSV/],
  ])("%s: no candidate, and a sentence that names the kind of file", async (_name, bytes, code, sentence) => {
    expect(await detectCandidates(oneChunk(bytes))).toEqual({
      formats: [],
      encodings: [],
      refusal: { code, detail: expect.stringMatching(sentence) as string },
    });
  });

  it("a header of a million columns: no candidate, within moments", async () => {
    for (const header of [",".repeat(1_000_000), `CH${",x".repeat(30_000)}`, ";".repeat(60_000)]) {
      const startedAtMs = performance.now();
      expect((await detectCandidates(oneChunk(Buffer.from(`RH,1\n${header}\n`)))).formats).toEqual([]);
      // This took minutes when the time grew with the square of the columns.
      expect(performance.now() - startedAtMs).toBeLessThan(10_000);
    }
  });
});

describe("the formats of statements", () => {
  it("the formats have one name each, by which they are found", () => {
    const names = STATEMENT_FORMATS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const format of STATEMENT_FORMATS) expect(statementFormat(format.name)).toBe(format);
    expect(statementFormat("")).toBeUndefined();
    expect(statementFormat("toString")).toBeUndefined();
  });

  it.each(samples)("%s is detected as a format of its folder, and as no other one", (sample) => {
    const [folder = ""] = sample.split("/");
    const names = namesOf(headOf(sample));
    expect(names.length).toBeLessThanOrEqual(1);
    for (const name of names) expect(FORMATS_OF[folder]).toContain(name);
  });

  it("whole samples of every provider are detected", () => {
    expect(
      ["adyen/batch.csv", "stripe/payout.csv", "paypal/stl.csv", "paypal/trr.csv"].map(headOf).map(namesOf),
    ).toEqual([["adyen_settlement_details"], ["stripe_payout_reconciliation"], ["paypal_stl"], ["paypal_trr"]]);
    expect(["paypal/activity-de.csv", "stripe/activity.csv"].map(headOf).map(namesOf)).toEqual([
      ["paypal_activity"],
      ["stripe_activity"],
    ]);
  });

  it("text of any other kind is not detected, and no detection throws", () => {
    const heads = fc.oneof(
      fc.string(),
      fc.constantFrom(...samples).chain((sample) =>
        fc.tuple(fc.nat(), fc.string({ maxLength: 3 })).map(([at, part]) => {
          const head = headOf(sample);
          const place = at % head.length;
          return head.slice(0, place) + part + head.slice(place + 1);
        }),
      ),
    );
    fc.assert(
      fc.property(heads, (head) => {
        expect(detectFormats(head).length).toBeLessThanOrEqual(STATEMENT_FORMATS.length);
      }),
      { numRuns: 100 },
    );
    expect(namesOf("")).toEqual([]);
    expect(namesOf("Date,Amount\n2026-01-01,5\n")).toEqual([]);
  });

  it("detection reads only a bounded beginning of the file", () => {
    expect(namesOf(" ".repeat(FORMAT_LIMITS.headCharacters) + headOf("adyen/batch.csv"))).toEqual([]);
  });
});
