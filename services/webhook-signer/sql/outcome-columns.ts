/**
 * Outcomes as one array of PostgreSQL's for each column. Written out here because the driver would make a closure and
 * look for quotes for every single value, which costs more than all the rest of writing.
 */
import type { OutcomeRow } from "./outcomes.ts";

interface Column {
  readonly name: keyof OutcomeRow;
  readonly type: string;
  readonly textOf: (row: OutcomeRow) => string;
}

const COLUMNS: readonly Column[] = [
  { name: "delivery_id", type: "bigint", textOf: (row) => String(row.delivery_id) },
  { name: "attempt_id", type: "bigint", textOf: (row) => String(row.attempt_id) },
  { name: "attempt", type: "integer", textOf: (row) => String(row.attempt) },
  { name: "asked", type: "integer", textOf: (row) => String(row.asked) },
  // A value that is null is written as this word, without quotes.
  { name: "retry_in_ms", type: "float8", textOf: (row) => String(row.retry_in_ms) },
  { name: "address", type: "text", textOf: (row) => quoted(row.address) },
  { name: "dns_ms", type: "real", textOf: (row) => String(row.dns_ms) },
  { name: "connect_ms", type: "real", textOf: (row) => String(row.connect_ms) },
  { name: "tls_ms", type: "real", textOf: (row) => String(row.tls_ms) },
  { name: "first_byte_ms", type: "real", textOf: (row) => String(row.first_byte_ms) },
  { name: "total_ms", type: "real", textOf: (row) => String(row.total_ms) },
  { name: "http_status", type: "smallint", textOf: (row) => String(row.http_status) },
  { name: "error", type: "text", textOf: (row) => quoted(row.error) },
  { name: "response_body", type: "text", textOf: (row) => quoted(row.response_body) },
  { name: "is_truncated", type: "boolean", textOf: (row) => String(row.is_truncated) },
  { name: "is_manual", type: "boolean", textOf: (row) => String(row.is_manual) },
];

/** The rows of a statement that is given `outcomeArrays` as its first parameters. */
export const OUTCOMES = `unnest(${COLUMNS.map(({ type }, at) => `$${at + 1}::${type}[]`).join(", ")})
  as i (${COLUMNS.map(({ name }) => name).join(", ")})`;

/** The parameter behind them. */
export const PARAMETER_BEHIND_OUTCOMES = `$${COLUMNS.length + 1}`;

export function outcomeArrays(outcomes: readonly OutcomeRow[]): string[] {
  return COLUMNS.map(({ textOf }) => `{${outcomes.map(textOf).join(",")}}`);
}

/** In quotes any text is itself, even `null`, but for quotes and back-slashes. */
function quoted(text: string | null): string {
  if (text === null) return "null";
  return text === "" ? '""' : `"${text.replace(/["\\]/g, "\\$&")}"`;
}
