/**
 * Outcomes as one array of PostgreSQL's for each column. Written out here because the driver would make a closure and
 * look for quotes for every single value, which costs more than all the rest of writing.
 */
import type { OutcomeRow } from "./outcomes.ts";

export type OutcomeColumns = { readonly [Column in keyof OutcomeRow]: string };

export function outcomeColumns(outcomes: readonly OutcomeRow[]): OutcomeColumns {
  return {
    delivery_id: arrayOf(outcomes, (row) => row.delivery_id),
    attempt_id: arrayOf(outcomes, (row) => row.attempt_id),
    attempt: arrayOf(outcomes, (row) => row.attempt),
    asked: arrayOf(outcomes, (row) => row.asked),
    retry_in_ms: arrayOf(outcomes, (row) => row.retry_in_ms),
    address: arrayOf(outcomes, (row) => quoted(row.address)),
    dns_ms: arrayOf(outcomes, (row) => row.dns_ms),
    connect_ms: arrayOf(outcomes, (row) => row.connect_ms),
    tls_ms: arrayOf(outcomes, (row) => row.tls_ms),
    first_byte_ms: arrayOf(outcomes, (row) => row.first_byte_ms),
    total_ms: arrayOf(outcomes, (row) => row.total_ms),
    http_status: arrayOf(outcomes, (row) => row.http_status),
    error: arrayOf(outcomes, (row) => quoted(row.error)),
    response_body: arrayOf(outcomes, (row) => quoted(row.response_body)),
    is_truncated: arrayOf(outcomes, (row) => row.is_truncated),
    is_manual: arrayOf(outcomes, (row) => row.is_manual),
  };
}

function arrayOf(
  outcomes: readonly OutcomeRow[],
  valueOf: (row: OutcomeRow) => number | boolean | string | null,
): string {
  let text = "";
  // A value that is null is written as this word, without quotes.
  for (const row of outcomes) text += text === "" ? String(valueOf(row)) : `,${String(valueOf(row))}`;
  return `{${text}}`;
}

/** In quotes any text is itself, even `null`, but for quotes and back-slashes. */
function quoted(text: string | null): string | null {
  if (text === null) return null;
  return text === "" ? '""' : `"${text.replace(/["\\]/g, "\\$&")}"`;
}
