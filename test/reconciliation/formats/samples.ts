/** The sample files, and what a parser reads in them. */
import { createReadStream } from "node:fs";
import { fileURLToPath } from "node:url";
import { decode, type Encoding } from "../../../services/reconciliation/formats/decode.ts";
import type {
  ParseOptions,
  StatementFormat,
  StatementLine,
  StatementRecord,
} from "../../../services/reconciliation/formats/format.ts";
import { collected, oneChunk } from "./chunks.ts";

export const NO_OPTIONS: ParseOptions = { mapping: undefined, timeZone: undefined };

export function sampleBytes(path: string): AsyncIterable<Uint8Array> {
  return createReadStream(fileURLToPath(new URL(`../samples/${path}`, import.meta.url)));
}

export function sampleText(path: string, encoding: Encoding = "utf-8"): AsyncIterable<string> {
  return decode(sampleBytes(path), encoding);
}

export function parseText(
  format: StatementFormat,
  text: string,
  options: Partial<ParseOptions> = {},
): Promise<StatementRecord[]> {
  return collected(format.parse(oneChunk(text), { ...NO_OPTIONS, ...options }));
}

export function parseSample(
  format: StatementFormat,
  path: string,
  options: Partial<ParseOptions> = {},
): Promise<StatementRecord[]> {
  return collected(format.parse(sampleText(path), { ...NO_OPTIONS, ...options }));
}

export function linesOf(records: readonly StatementRecord[]): readonly StatementLine[] {
  return records.flatMap((record) => (record.type === "line" ? [record.line] : []));
}

/** "3 amount: One sentence." for each malformed row. */
export function problemsOf(records: readonly StatementRecord[]): readonly string[] {
  return records.flatMap((record) =>
    record.type === "malformed"
      ? [`${record.malformed.position} ${record.malformed.column}: ${record.malformed.reason}`]
      : [],
  );
}
