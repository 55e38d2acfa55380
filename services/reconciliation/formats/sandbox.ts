/** The sandbox provider's statement as CSV: one row for each payment that was paid, with an amount in decimal notation. */
import { currencyCode } from "./amounts.ts";
import { type BoundHeader, bindHeader, dictionaryRule } from "./csv/dictionary.ts";
import { decimalOf, FieldProblem, quoted, recordOfRow } from "./csv/field-problem.ts";
import { type CsvRow, findHeader, readCsv } from "./csv/read-csv.ts";
import { isoDate, isoInstant } from "./dates.ts";
import { SANDBOX_COLUMNS, type SandboxField } from "./dictionaries/sandbox-columns.ts";
import type { StatementFormat, StatementRecord } from "./format.ts";
import { lineRecord, NEXT_FILE } from "./records.ts";

const CSV = { delimiter: ",", header: dictionaryRule(SANDBOX_COLUMNS) };

export const sandbox: StatementFormat = {
  name: "sandbox",
  version: SANDBOX_COLUMNS.version,
  title: "Sandbox provider statement",
  detect: (head) => findHeader(head, CSV) !== undefined,
  parse: parseSandbox,
};

async function* parseSandbox(text: AsyncIterable<string>): AsyncIterable<StatementRecord> {
  let header: BoundHeader<SandboxField> | undefined;
  for await (const record of readCsv(text, CSV)) {
    if (record.type === "header") header = bindHeader(record.header.columns, SANDBOX_COLUMNS);
    else if (record.type === "repeated_header") yield NEXT_FILE;
    else if (record.type === "malformed") yield record;
    else yield recordOfRow(record.row, (row) => lineOf(row, header as BoundHeader<SandboxField>));
  }
}

function lineOf(row: CsvRow, header: BoundHeader<SandboxField>): StatementRecord {
  const value = (field: SandboxField): string => header.value(row, field);
  const currency = currencyCode(value("currency"));
  if (currency === undefined)
    throw new FieldProblem("currency", `${quoted(value("currency"))} is no ISO 4217 currency.`);
  const bookedOn = isoDate(value("paid_at"));
  if (bookedOn === undefined)
    throw new FieldProblem("paid_at", `${quoted(value("paid_at"))} is no date and time in ISO 8601.`);
  if (value("payment_id") === "") throw new FieldProblem("payment_id", "The row has no payment id.");
  return lineRecord({
    position: row.position,
    kind: "payment",
    providerType: "payment",
    amountMinor: decimalOf("amount", value("amount"), currency),
    currency,
    bookedOn,
    occurredAt: isoInstant(value("paid_at")),
    providerReference: value("payment_id"),
    merchantReference: value("reference"),
    account: value("account"),
    details: header.details(row, ["line"]),
  });
}
