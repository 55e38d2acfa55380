import { describe, expect, it } from "vitest";
import { detectCandidates } from "../../../services/reconciliation/detection.ts";
import type { Encoding } from "../../../services/reconciliation/formats/decode.ts";
import type { StatementFormat } from "../../../services/reconciliation/formats/format.ts";
import { FORMAT_LIMITS } from "../../../services/reconciliation/formats/limits.ts";
import { statementFormat } from "../../../services/reconciliation/formats/registry.ts";
import { statementText } from "../../../services/reconciliation/formats/statement-text.ts";
import { collected, dividedAt, oneChunk } from "./chunks.ts";
import { sample } from "./read-sample.ts";
import { zipOf } from "./zip-writer.ts";

const EMPTY: readonly (readonly [what: string, bytes: Uint8Array, encoding: Encoding])[] = [
  ["no bytes", Buffer.of(), "utf-8"],
  ["white space alone", Buffer.from(" \r\n\t\n\u00a0"), "utf-8"],
  ["a byte order mark alone", Buffer.from("\ufeff"), "utf-8"],
  ["a byte order mark of UTF-16 alone", Buffer.of(0xff, 0xfe), "utf-16le"],
  ["white space in UTF-16", Buffer.from("\ufeff  \n", "utf16le"), "utf-16le"],
];
const REFUSAL = { code: "empty_file", detail: "The file is empty: download it from the provider again." };

describe("a file without text", () => {
  it.each(EMPTY)("%s: refused as empty, whether its encoding is declared or not", async (_, bytes, encoding) => {
    const text = collected(statementText(oneChunk(bytes), encoding));
    await expect(text).rejects.toMatchObject({ code: REFUSAL.code, message: REFUSAL.detail });
    expect(await detectCandidates(oneChunk(bytes))).toEqual({ formats: [], encodings: [], refusal: REFUSAL });
  });

  it.each(EMPTY)("%s in an archive: refused as empty", async (_, content) => {
    const { refusal } = await detectCandidates(oneChunk(zipOf([{ name: "a.csv", content: Buffer.from(content) }])));
    expect(refusal).toEqual(REFUSAL);
  });

  it("text after white space, however it is divided: unchanged", async () => {
    const text = " \n\n  line,payment_id\n \n";
    for (const at of [[], [1], [3, 4], [12]]) {
      const parts = await collected(statementText(dividedAt(Buffer.from(text), at), "utf-8"));
      expect(parts.join("")).toBe(text);
    }
  });

  it("white space without an end: passed on to the parser, and not held", async () => {
    const spaces = " ".repeat(2 * FORMAT_LIMITS.headCharacters);
    expect((await collected(statementText(oneChunk(Buffer.from(spaces)), "utf-8"))).join("")).toBe(spaces);
  });
});

/** A sample of each format whose first line is its header. */
const HEADED: readonly (readonly [format: string, sample: string])[] = [
  ["sumup", "sumup/de-early-2025.csv"],
  ["sumup", "sumup/fr-2025.csv"],
  ["sumup", "sumup/it-2025.csv"],
  ["sumup", "sumup/en-2026.csv"],
  ["adyen_settlement_details", "adyen/batch.csv"],
  ["stripe_payout_reconciliation", "stripe/payout.csv"],
  ["stripe_activity", "stripe/activity.csv"],
  ["paypal_activity", "paypal/activity-de.csv"],
  ["sandbox", "sandbox/statement.csv"],
];

describe("a file with its header and no row", () => {
  it.each(HEADED)("%s, %s: a statement without movements", async (name, path) => {
    const format = statementFormat(name) as StatementFormat;
    const options = { mapping: undefined, timeZone: undefined, currency: "EUR" };
    const [header = ""] = sample(path).split("\n");
    for (const text of [header, `${header}\n`, `${header}\r\n\r\n`]) {
      expect(await collected(format.parse(oneChunk(text), options))).toEqual([]);
      const { formats } = await detectCandidates(oneChunk(Buffer.from(text)));
      expect(formats.map((found) => found.name)).toEqual([name]);
    }
  });
});
