/** Reads samples through the parsers, in chunks of any size. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { malformedReason } from "../../../services/bus/malformed-reasons.ts";
import type { StatementRefusal } from "../../../services/bus/messages/statement-formats.ts";
import {
  type ControlTotal,
  type MalformedLine,
  type StatementFormat,
  type StatementHeader,
  type StatementLine,
  type StatementRecord,
  StatementRefusedError,
} from "../../../services/reconciliation/formats/format.ts";

export function sample(path: string): string {
  return readFileSync(new URL(`../samples/${path}`, import.meta.url), "utf8");
}

/** The text in chunks of these lengths, which repeat. */
export async function* chunked(text: string, lengths: readonly number[] = [1_000]): AsyncGenerator<string> {
  let start = 0;
  for (let turn = 0; start < text.length; turn += 1) {
    const length = Math.max(1, lengths[turn % lengths.length] ?? 1);
    yield text.slice(start, start + length);
    start += length;
  }
}

export async function recordsOf(
  format: StatementFormat,
  text: string | AsyncIterable<string>,
): Promise<readonly StatementRecord[]> {
  const records: StatementRecord[] = [];
  const chunks = typeof text === "string" ? chunked(text) : text;
  for await (const record of format.parse(chunks, { mapping: undefined, timeZone: undefined })) records.push(record);
  for (const record of records)
    if (record.type === "malformed") expect(malformedReason(record.malformed.reason).reasonCode).not.toBe("other");
  return records;
}

export interface Reading {
  readonly headers: readonly StatementHeader[];
  readonly lines: readonly StatementLine[];
  readonly malformed: readonly MalformedLine[];
  readonly totals: readonly ControlTotal[];
}

export async function read(format: StatementFormat, text: string | AsyncIterable<string>): Promise<Reading> {
  const records = await recordsOf(format, text);
  return {
    headers: records.flatMap((record) => (record.type === "header" ? [record.header] : [])),
    lines: records.flatMap((record) => (record.type === "line" ? [record.line] : [])),
    malformed: records.flatMap((record) => (record.type === "malformed" ? [record.malformed] : [])),
    totals: records.flatMap((record) => (record.type === "total" ? [record.total] : [])),
  };
}

/** The sum of the lines' changes to the account. */
export function movedBy({ lines }: Reading): bigint {
  return lines
    .filter(({ kind }) => kind !== "not_money")
    .reduce((sum, { netMinor, amountMinor }) => sum + (netMinor ?? amountMinor), 0n);
}

export async function expectRefusal(
  format: StatementFormat,
  text: string | AsyncIterable<string>,
  code: StatementRefusal,
  sentence: RegExp = /./,
): Promise<void> {
  const error: unknown = await recordsOf(format, text).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StatementRefusedError);
  expect(error).toMatchObject({ code, message: expect.stringMatching(sentence) });
  expect((error as Error).message).toMatch(/^[A-Z].*\.$/);
}

/** Expects records or a refusal. Any other error fails the test. */
export async function expectRecordsOrRefusal(format: StatementFormat, text: string): Promise<void> {
  try {
    for (const record of await recordsOf(format, text))
      expect(record.type).toMatch(/^(?:header|line|malformed|next_file|total)$/);
  } catch (error) {
    if (!(error instanceof StatementRefusedError)) throw error;
    expect(error.message).toMatch(/\.$/);
  }
}
