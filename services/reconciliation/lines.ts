/** Lists the lines of statements, and the malformed rows. */
import { malformedReason } from "../bus/malformed-reasons.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/statement-lines.ts";
import type { ReplyOf } from "../bus/operation.ts";
import { readPage } from "../bus/page.ts";
import { existing } from "../bus/refusals.ts";
import { readStoredJson, readStoredText } from "../db/stored-text.ts";
import type { ReconciliationHandler } from "./deps.ts";
import * as sql from "./sql/lines.ts";

/** Refuses with `permission_denied` or `not_found`. */
export const listLines: ReconciliationHandler<typeof bus.listLines> = async ({ database }, request) => {
  const { caller, accountId, fromDate, toDate, after, limit, ...filter } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  existing(await sql.hasAccount(database, { organizationId, accountId }), "account_id");
  const { page, hasMore } = await readPage<bus.StatementLine>(limit, async (last, count) => {
    const wanted = { accountId, fromDate, toDate, filter, after: last ?? after, limit: count };
    return (await sql.listLines(database, wanted)).map(lineOf);
  });
  return { lines: page, hasMore };
};

type ImportLine = ReplyOf<typeof bus.listImportLines>["lines"][number];

/** Refuses with `permission_denied` or `not_found`. */
export const listImportLines: ReconciliationHandler<typeof bus.listImportLines> = async ({ database }, request) => {
  const { caller, importId, sincePosition, limit, ...filter } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  existing(await sql.hasImport(database, { organizationId, importId }));
  const { page, hasMore } = await readPage<ImportLine>(limit, async (last, count) => {
    const wanted = { importId, filter, sincePosition: last?.position ?? sincePosition, limit: count };
    const rows = await sql.listImportLines(database, wanted);
    return rows.map((row) => ({ ...lineOf(row), position: row.position }));
  });
  return { lines: page, hasMore };
};

/** Refuses with `permission_denied` or `not_found`. */
export const listMalformedRows: ReconciliationHandler<typeof bus.listMalformedRows> = async ({ database }, request) => {
  const { caller, accountId, importId, after = { importId: 0, position: 0 }, limit } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  if (accountId !== undefined) existing(await sql.hasAccount(database, { organizationId, accountId }), "account_id");
  if (importId !== undefined) existing(await sql.hasImport(database, { organizationId, importId }), "import_id");
  const { page, hasMore } = await readPage<bus.ListedMalformedRow>(limit, async (last, count) => {
    const wanted = { organizationId, accountId, importId, after: last ?? after, limit: count };
    return (await sql.listMalformedRows(database, wanted)).map(malformedRowOf);
  });
  return { rows: page, hasMore };
};

function malformedRowOf(row: sql.MalformedRowRow): bus.ListedMalformedRow {
  const reason = readStoredText(row.reason);
  return {
    importId: row.import_id,
    position: row.position,
    column: readStoredText(row.column_name),
    reason,
    ...malformedReason(reason),
    raw: readStoredText(row.raw),
  };
}

function lineOf(row: sql.LineRow): bus.StatementLine {
  return {
    lineId: row.line_id,
    accountId: row.account_id,
    kind: row.kind,
    providerType: readStoredText(row.provider_type),
    amountMinor: row.amount_minor,
    currency: row.currency,
    feeMinor: row.fee_minor,
    netMinor: row.net_minor,
    tipMinor: row.tip_minor,
    bookedOn: row.booked_on,
    valueOn: row.value_on,
    occurredAt: row.occurred_at?.toISOString() ?? null,
    providerReference: readStoredText(row.provider_reference),
    paymentReference: readStoredText(row.payment_reference),
    merchantReference: readStoredText(row.merchant_reference),
    payoutReference: readStoredText(row.payout_reference),
    terminal: readStoredText(row.terminal),
    account: readStoredText(row.account),
    text: readStoredText(row.text),
    details: readStoredJson({ ...row.details }),
    sources: [...row.sources],
    outcome: row.outcome,
    outcomeReason: row.outcome_reason,
    issueId: row.issue_id,
    matchId: row.match_id,
  };
}
