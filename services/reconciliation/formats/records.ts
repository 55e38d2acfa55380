/** Records as every parser makes them: empty fields are left out, and long texts are cut. */
import type { ControlTotal, MalformedLine, StatementHeader, StatementLine, StatementRecord } from "./format.ts";
import { FORMAT_LIMITS } from "./limits.ts";

type Required = "position" | "kind" | "providerType" | "amountMinor" | "currency" | "bookedOn";

/** The fields that a parser gives; the others are undefined or "". */
export type LineFields = Pick<StatementLine, Required> & {
  readonly [Field in Exclude<keyof StatementLine, Required | "details">]?: StatementLine[Field] | undefined;
} & { readonly details?: Iterable<readonly [name: string, value: string | undefined]> | undefined };

export function lineRecord(fields: LineFields): StatementRecord {
  const { details, ...rest } = fields;
  const line: StatementLine = {
    position: rest.position,
    kind: rest.kind,
    providerType: rest.providerType,
    amountMinor: rest.amountMinor,
    currency: rest.currency,
    feeMinor: rest.feeMinor,
    netMinor: rest.netMinor,
    tipMinor: rest.tipMinor,
    bookedOn: rest.bookedOn,
    valueOn: rest.valueOn,
    occurredAt: rest.occurredAt,
    providerReference: rest.providerReference ?? "",
    paymentReference: rest.paymentReference ?? "",
    merchantReference: rest.merchantReference ?? "",
    payoutReference: rest.payoutReference ?? "",
    terminal: rest.terminal ?? "",
    account: rest.account ?? "",
    text: cutTo(FORMAT_LIMITS.textCharacters, rest.text ?? ""),
    details: boundedDetails(details ?? []),
  };
  const long = REFERENCES.find((field) => line[field].length > FORMAT_LIMITS.referenceCharacters);
  return long === undefined ? { type: "line", line } : tooLong(line, long);
}

const REFERENCES = [
  "providerType",
  "providerReference",
  "paymentReference",
  "merchantReference",
  "payoutReference",
  "terminal",
  "account",
] as const;

/** A reference identifies the line, so it is never cut. */
function tooLong(line: StatementLine, field: (typeof REFERENCES)[number]): StatementRecord {
  const reason = `The value is longer than ${FORMAT_LIMITS.referenceCharacters} characters.`;
  return malformedRecord({ position: line.position, column: field, reason, raw: line[field] });
}

export function malformedRecord(malformed: MalformedLine): StatementRecord {
  const column = cutTo(FORMAT_LIMITS.detailNameCharacters, malformed.column);
  return {
    type: "malformed",
    malformed: { ...malformed, column, raw: cutTo(FORMAT_LIMITS.rawCharacters, malformed.raw) },
  };
}

export function headerRecord(header: StatementHeader): StatementRecord {
  return { type: "header", header };
}

export const NEXT_FILE: StatementRecord = { type: "next_file" };

export function totalRecord(total: ControlTotal): StatementRecord {
  return { type: "total", total };
}

/** The first of a text's characters; a surrogate pair is not divided. */
export function cutTo(characters: number, text: string): string {
  if (text.length <= characters) return text;
  const end = (text.codePointAt(characters - 1) ?? 0) > 0xffff ? characters - 1 : characters;
  return text.slice(0, end);
}

/** Empty values are left out; of two fields with one name the first stays, and the second has a number after its name. */
function boundedDetails(entries: Iterable<readonly [name: string, value: string | undefined]>): Record<string, string> {
  const details = new Map<string, string>();
  for (const [name, value] of entries) {
    if (value === undefined || value === "") continue;
    if (details.size >= FORMAT_LIMITS.detailFields) break;
    const short = cutTo(FORMAT_LIMITS.detailNameCharacters, name);
    let key = short;
    for (let count = 2; details.has(key); count += 1) key = `${short} ${count}`;
    details.set(key, cutTo(FORMAT_LIMITS.detailCharacters, value));
  }
  return Object.fromEntries(details);
}

/** The record with its position moved by `by`, and the new position; 0 for a record without a position. */
export function moved(
  record: StatementRecord,
  by: number,
): { readonly row: StatementRecord; readonly position: number } {
  if (record.type === "line") {
    const position = record.line.position + by;
    return { row: { type: "line", line: { ...record.line, position } }, position };
  }
  if (record.type === "malformed") {
    const position = record.malformed.position + by;
    return { row: { type: "malformed", malformed: { ...record.malformed, position } }, position };
  }
  return { row: record, position: 0 };
}
