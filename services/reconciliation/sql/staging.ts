/** The rows that an import has read and not yet stored. They go to PostgreSQL by COPY, a bounded batch at a time. */
import { once } from "node:events";
import type { Writable } from "node:stream";
import type { Database, Queryable, Transaction } from "../../db/pool.ts";
import { storedText } from "../../db/stored-text.ts";
import type { MalformedLine, StatementLine } from "../formats/format.ts";

export interface StagedLine {
  readonly line: StatementLine;
  /** 32 bytes (`line-identity.ts`). */
  readonly identity: Buffer;
}

/** One attempt of one import. */
export interface AttemptKey {
  readonly importId: number;
  readonly attempt: string;
}

/** One line of COPY's text format, without its end. */
export function stagingRow({ importId, attempt }: AttemptKey, { line, identity }: StagedLine): string {
  return [
    importId,
    attempt,
    line.position,
    `\\\\x${identity.toString("hex")}`,
    line.kind,
    field(line.providerType),
    line.amountMinor,
    line.currency,
    line.feeMinor ?? NULL,
    line.netMinor ?? NULL,
    line.tipMinor ?? NULL,
    line.bookedOn,
    line.valueOn ?? NULL,
    line.occurredAt ?? NULL,
    field(line.providerReference),
    field(line.paymentReference),
    field(line.merchantReference),
    field(line.payoutReference),
    field(line.terminal),
    field(line.account),
    field(line.text),
    field(JSON.stringify(line.details)),
  ].join("\t");
}

const NULL = "\\N";
const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** Verbatim text, with what PostgreSQL cannot store replaced by its marks (`stored-text.ts`). */
const field = (text: string): string =>
  storedText(text).replaceAll(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? "");

/** Appends rows of `stagingRow`; the whole batch is stored, or nothing of it. */
export async function copyToStaging(sql: Database, rows: readonly string[]): Promise<void> {
  const copy = sql`
    copy statement_staging (import_id, attempt, position, identity, kind, provider_type, amount_minor, currency, fee_minor, net_minor,
      tip_minor, booked_on, value_on, occurred_at, provider_reference, payment_reference, merchant_reference,
      payout_reference, terminal, account, text, details) from stdin`;
  const stream: Writable = await copy.writable();
  const finished = once(stream, "finish");
  stream.end(`${rows.join("\n")}\n`);
  await finished;
}

/** Rows that are no line. */
export async function insertMalformed(
  sql: Queryable,
  importId: number,
  malformed: readonly MalformedLine[],
): Promise<void> {
  const rows = malformed.map(({ position, column, reason, raw }) => ({
    import_id: importId,
    position,
    column_name: storedText(column),
    reason: storedText(reason),
    raw: storedText(raw),
  }));
  await sql`
    insert into statement_malformed (import_id, position, column_name, reason, raw)
    select import_id, position, column_name, reason, raw
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
        as row (import_id bigint, position bigint, column_name text, reason text, raw text)
    on conflict (import_id, position) do nothing`;
}

/** What this attempt has staged. */
export async function clearStaging(sql: Queryable, { importId, attempt }: AttemptKey): Promise<void> {
  await sql`delete from statement_staging where import_id = ${importId} and attempt = ${attempt}`;
}

/** What earlier attempts have left. */
export async function clearAttempts(sql: Transaction, importId: number): Promise<void> {
  await sql`delete from statement_staging where import_id = ${importId}`;
  await sql`delete from statement_malformed where import_id = ${importId}`;
}
