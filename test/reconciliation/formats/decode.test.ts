import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decode, detectEncoding, ENCODINGS, type Encoding } from "../../../services/reconciliation/formats/decode.ts";
import { StatementRefusedError } from "../../../services/reconciliation/formats/format.ts";
import { collected, dividedAt, oneChunk } from "./chunks.ts";

const decoded = async (bytes: Uint8Array, encoding: Encoding): Promise<string> =>
  (await collected(decode(oneChunk(bytes), encoding))).join("");
const bytesOf = (...bytes: readonly number[]): Uint8Array => new Uint8Array(bytes);
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const utf16be = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "utf16le").swap16());
const utf16le = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "utf16le"));

describe("decode", () => {
  it.each<[Encoding, Uint8Array, string]>([
    ["utf-8", utf8("Gebühr 5 €"), "Gebühr 5 €"],
    ["utf-8", utf8("\ufeffDatum"), "Datum"],
    ["utf-16le", utf16le("\ufeffDatum €"), "Datum €"],
    ["utf-16be", utf16be("Datum €"), "Datum €"],
    ["windows-1252", bytesOf(0x80, 0x20, 0xfc), "€ ü"],
    ["iso-8859-1", bytesOf(0xa4, 0xfc), "¤ü"],
    ["iso-8859-15", bytesOf(0xa4, 0xfc), "€ü"],
    ["windows-1250", bytesOf(0xf8), "ř"],
    ["iso-8859-2", bytesOf(0xf8), "ř"],
    ["macintosh", bytesOf(0x9f), "ü"],
    ["cp850", bytesOf(0x81), "ü"],
    ["cp437", bytesOf(0x9c), "£"],
    ["utf-8", bytesOf(), ""],
    ["utf-8", utf8("a"), "a"],
  ])("%s: decodes %o as %s", async (encoding, bytes, text) => {
    expect(await decoded(bytes, encoding)).toBe(text);
  });

  it.each<[string, Encoding, Uint8Array, string]>([
    ["a byte that is no UTF-8", "utf-8", bytesOf(0x61, 0x62, 0xff, 0x63), "0xff at offset 2"],
    ["a character that breaks off", "utf-8", bytesOf(0x61, 0xe2, 0x82, 0x41), "0x41 at offset 3"],
    ["a lone surrogate", "utf-16le", bytesOf(0x61, 0, 0, 0xd8, 0x62, 0), "offset 5"],
    ["a byte that windows-1252 lacks", "windows-1252", bytesOf(0x61, 0x81), "0x81 at offset 1"],
    ["a euro sign of windows-1252 in ISO 8859-1", "iso-8859-1", bytesOf(0x61, 0x80), "0x80 at offset 1"],
    ["a NUL byte", "utf-8", bytesOf(0x61, 0x62, 0x63, 0), "NUL byte at offset 3"],
    ["a NUL byte in a code page", "cp850", bytesOf(0x61, 0x62, 0x63, 0), "NUL byte at offset 3"],
    ["a NUL before a byte that is no UTF-8", "utf-8", bytesOf(0x61, 0, 0xff), "NUL byte at offset 1"],
    ["a NUL in UTF-16", "utf-16be", bytesOf(0, 0x61, 0, 0x62, 0, 0), "NUL byte at offset 4"],
    ["UTF-16 that is declared as UTF-8", "utf-8", utf16le("\ufeffDatum"), "declare utf-16le"],
    ["UTF-8 that is declared as windows-1252", "windows-1252", utf8("\ufeffDatum"), "declare utf-8"],
  ])("refuses %s in one sentence", async (_name, encoding, bytes, part) => {
    const refusal = await decoded(bytes, encoding).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StatementRefusedError);
    expect(refusal).toMatchObject({ code: "not_text", message: expect.stringContaining(part) });
  });

  it.each<[Encoding, Uint8Array]>([
    ["utf-8", bytesOf(0x61, 0x62, 0x63, 0xe2, 0x82)],
    ["utf-16le", bytesOf(0x61, 0, 0x62, 0, 0x63)],
  ])("%s: a file that ends in the middle of a character is truncated", async (encoding, bytes) => {
    await expect(decoded(bytes, encoding)).rejects.toMatchObject({ code: "truncated" });
  });

  it("gives the same text for each division into chunks", async () => {
    const unicode = fc
      .string({ unit: "binary", maxLength: 20 })
      .filter((text) => text.isWellFormed() && !/[\0\ufeff]/.test(text));
    await fc.assert(
      fc.asyncProperty(unicode, fc.array(fc.nat(), { maxLength: 6 }), async (text, places) => {
        for (const [encoding, bytes] of [
          ["utf-8", utf8(text)],
          ["utf-16le", utf16le(text)],
          ["utf-16be", utf16be(text)],
        ] as const) {
          expect((await collected(decode(dividedAt(bytes, places), encoding))).join("")).toBe(text);
        }
      }),
    );
  });

  it("names the same offset for each division into chunks, and throws nothing but a refusal", async () => {
    await fc.assert(
      fc.asyncProperty(
        // Zeros and surrogates are frequent, so that each kind of refusal is sometimes the first one.
        fc.array(fc.oneof(fc.constantFrom(0, 0x61, 0xd8, 0xdc, 0xef, 0xff), fc.nat(255)), { maxLength: 40 }),
        fc.array(fc.nat(), { maxLength: 6 }),
        fc.constantFrom(...ENCODINGS),
        async (numbers, places, encoding) => {
          const bytes = bytesOf(...numbers);
          const whole = await decoded(bytes, encoding).catch((error: unknown) => error);
          const parts = await collected(decode(dividedAt(bytes, places), encoding)).then(
            (texts) => texts.join(""),
            (error: unknown) => error,
          );
          expect(parts).toEqual(whole);
          if (typeof whole !== "string") expect(whole).toBeInstanceOf(StatementRefusedError);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("detectEncoding", () => {
  it.each<[string, Uint8Array, readonly Encoding[]]>([
    ["a byte order mark", utf8("\ufeffDatum"), ["utf-8"]],
    ["UTF-16 with a mark", utf16be("\ufeffDatum"), ["utf-16be"]],
    ["UTF-16 without a mark", utf16be("Datum;Betrag"), ["utf-16be"]],
    ["little-endian UTF-16 without a mark", utf16le("Datum;Gebühr"), ["utf-16le"]],
    ["ASCII", utf8("date,amount"), ["utf-8", "windows-1252"]],
    ["UTF-8", utf8("Gebühr"), ["utf-8"]],
    ["UTF-8 that the head cuts in a character", utf8("Gebühr €").slice(0, -1), ["utf-8"]],
    ["a euro sign of windows-1252", bytesOf(0x35, 0x20, 0x80), ["windows-1252", "macintosh", "cp850"]],
    ["NUL bytes among text", bytesOf(0x61, 0x62, 0, 0x63, 0x64, 0x65), []],
    [
      "XML that declares its encoding",
      bytesOf(...utf8("<?xml version='1.0' encoding='ISO-8859-1'?><a>Geb"), 0xfc),
      ["iso-8859-1"],
    ],
    [
      "XML that declares its encoding, in ASCII so far",
      utf8('<?xml version="1.0" encoding="Windows-1252"?>'),
      ["windows-1252"],
    ],
    [
      "XML that declares UTF-8 and is not",
      bytesOf(...utf8('<?xml version="1.0" encoding="UTF-8"?>'), 0x80),
      ["windows-1252", "macintosh", "cp850"],
    ],
    ["XML that declares nothing", utf8("<?xml version='1.0'?><a>Gebühr</a>"), ["utf-8"]],
  ])("%s: gives candidates, the likeliest first", (_name, head, encodings) => {
    expect(detectEncoding(head).map(({ encoding }) => encoding)).toEqual(encodings);
  });

  it("gives a sample of the text that each candidate reads", () => {
    const [first, ...others] = detectEncoding(bytesOf(...utf8("Geb"), 0xfc, ...utf8("hr")));
    expect(first).toMatchObject({ encoding: "windows-1252", sample: "Gebühr" });
    expect(others.find(({ encoding }) => encoding === "cp850")?.sample).toBe("Geb³hr");
  });
});
