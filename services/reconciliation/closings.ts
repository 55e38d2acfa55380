/**
 * Closes periods. The service signs a statement in canonical JSON: the counts, the sums and the hashes of all lines and issues
 * of the period. What is imported later does not change the statement; it becomes an issue of the kind `after_closing`.
 */
import { requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/reconciliation-closings.ts";
import type { Handler, RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, invalidField, RefusedError } from "../bus/refusals.ts";
import { isLockTimeout } from "../db/lock-timeout.ts";
import type { Transaction } from "../db/pool.ts";
import { WorkStoppedError } from "../db/stoppable.ts";
import type { SigningKey } from "../runtime/signing-key.ts";
import { canonicalJson } from "./canonical-json.ts";

import type { ReconciliationDeps } from "./deps.ts";
import { PERIOD_LIMITS } from "./limits.ts";
import { missingSentence, periodOf } from "./periods.ts";
import * as sql from "./sql/closings.ts";
import { hasAccount } from "./sql/lines.ts";
import { listPeriods, type Period } from "./sql/periods.ts";

export interface ClosingDeps extends Pick<ReconciliationDeps, "database" | "longDatabase"> {
  /** Undefined where the installation has no key; then no period can be closed. */
  readonly closingKey: SigningKey | undefined;
}

type CloseRequest = RequestOf<typeof bus.closePeriod>;

const FORMAT = "device-payments/closing";
const FORMAT_VERSION = 1;

/** Refuses with `permission_denied`, `not_found`, `invalid_request`, `busy`, or `conflict` with a reason of `CLOSING_CONFLICTS`. */
export const closePeriod: Handler<ClosingDeps, typeof bus.closePeriod> = async (deps, request) => {
  const { caller, accountId, kind, fromDate } = request;
  requirePermission(caller, "reconciliation.manage");
  const period = { ...periodOf(kind, fromDate), accountId };
  const { organizationId } = caller;
  existing(await hasAccount(deps.database, { organizationId, accountId }), "account_id");
  const { closingKey, longDatabase, database } = deps;
  if (closingKey === undefined) {
    const detail = "This installation has no key for closings: its operator sets CLOSING_SIGNING_KEY.";
    throw conflict("no_signing_key", detail);
  }
  try {
    const closingId = await longDatabase.begin((tx) => close(tx, closingKey, request, period));
    return { closing: closingOf(existing(await sql.getClosing(database, { organizationId, closingId }))) };
  } catch (error) {
    if (isLockTimeout(error)) throw busy();
    // The same request again finds the closing, or closes the period.
    if (error instanceof WorkStoppedError) throw new RefusedError({ code: "unavailable" });
    throw error;
  }
};

/** Returns the closing's id: a new one, or that of the same request before. */
async function close(
  tx: Transaction,
  key: SigningKey,
  { caller, reason }: CloseRequest,
  period: Period & { readonly accountId: number },
): Promise<number> {
  const { organizationId } = caller;
  if (!(await sql.lockForClose(tx, { ...period, waitMs: PERIOD_LIMITS.lockWaitMs }))) throw busy();
  const earlier = await sql.findClosingOf(tx, period);
  if (earlier !== undefined) {
    if (isSamePeriod(earlier, period) && earlier.closed_by === caller.userId && earlier.reason === reason)
      return earlier.closing_id;
    throw conflict("period_closed", `This ${period.kind} is closed already, by closing ${earlier.closing_id}.`);
  }
  await requireReady(tx, organizationId, period);
  const { closed_at: closedAt, through_line_id: throughLineId, ...facts } = await sql.gatherClosing(tx, period);
  const statement = canonicalJson({
    ...facts,
    format: FORMAT,
    version: FORMAT_VERSION,
    key_id: key.keyId,
    organization_id: organizationId,
    period: { kind: period.kind, from_date: period.fromDate, to_date: period.toDate },
    closed_at: closedAt,
    closed_by: { user_id: caller.userId, name: caller.name },
    reason,
  });
  return await sql.insertClosing(tx, {
    ...period,
    organizationId,
    throughLineId,
    statement,
    keyId: key.keyId,
    publicKey: key.publicKey,
    signature: key.sign(statement),
    closedBy: caller.userId,
    closedByName: caller.name,
    closedAt,
    reason,
  });
}

const isSamePeriod = (row: sql.ClosingRow, { kind, fromDate }: Period): boolean =>
  row.kind === kind && row.from_date === fromDate;

async function requireReady(
  tx: Transaction,
  organizationId: number,
  period: Period & { readonly accountId: number },
): Promise<void> {
  const { accountId, kind, fromDate } = period;
  const [row] = await listPeriods(tx, { organizationId, accountId, kind, fromDate, toDate: fromDate, limit: 1 });
  if (row === undefined)
    throw conflict("period_not_ready", `This ${kind} has no period: the account's last day is before it.`);
  const { missing } = row;
  if (missing.length === 0) return;
  throw conflict("period_not_ready", `This ${kind} cannot be closed yet: ${missing.map(missingSentence).join("; ")}.`);
}

const conflict = (reason: (typeof bus.CLOSING_CONFLICTS)[number], detail: string): RefusedError =>
  new RefusedError({ code: "conflict", reason, detail });

const busy = (): RefusedError => new RefusedError({ code: "busy", retryAfterMs: PERIOD_LIMITS.retryMs });

/** Refuses with `permission_denied`, `not_found`. */
export const getClosing: Handler<ClosingDeps, typeof bus.getClosing> = async ({ database }, { caller, closingId }) => {
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  return { closing: closingOf(existing(await sql.getClosing(database, { organizationId, closingId }))) };
};

/** Refuses with `permission_denied`. */
export const listClosings: Handler<ClosingDeps, typeof bus.listClosings> = async ({ database }, request) => {
  const { caller, limit, ...page } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const { accountId, beforeId } = page;
  const rows = await sql.listClosings(database, { organizationId, accountId, beforeId, limit: limit + 1 });
  const { page: closings, hasMore } = firstPage(rows.map(closingOf), limit);
  return { closings, hasMore };
};

/** Refuses with `permission_denied`, `not_found`. */
export const listClosingItems: Handler<ClosingDeps, typeof bus.listClosingItems> = async ({ database }, request) => {
  const { caller, closingId, of, after, limit } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const closing = existing(await sql.getClosing(database, { organizationId, closingId }));
  if (after !== undefined && !ITEM_KEYS[of].test(after)) {
    throw invalidField("/after", "wrong_format", "Must be the key of an item.");
  }
  const page = { after, limit: limit + 1 };
  const isLarge = countsOf(closing).lines.count > PERIOD_LIMITS.sortedLines;
  const rows =
    of === "line"
      ? await sql.listClosingLines(database, { ...page, closing, isLarge })
      : await sql.listClosingIssues(database, { ...page, closingId });
  const { page: items, hasMore } = firstPage(rows, limit);
  return { items, hasMore };
};

const ITEM_KEYS = { line: /^[0-9a-f]{64}$/, issue: /^\d{1,15}$/ } as const;

/** Lists the public keys of the installation; they are not secret. Refuses with `permission_denied`. */
export const listClosingKeys: Handler<ClosingDeps, typeof bus.listClosingKeys> = async ({ database }, { caller }) => {
  requirePermission(caller, "reconciliation.manage");
  const rows = await sql.listClosingKeys(database);
  const keys = rows.map((row) => ({
    keyId: row.key_id,
    publicKey: base64url(row.public_key),
    firstUsedAtMs: row.first_used_at.getTime(),
  }));
  return { keys };
};

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");

/** The part of a statement that lists of closings show. */
interface Counted {
  readonly lines: { readonly count: number };
  readonly issues: { readonly count: number };
}

const countsOf = ({ statement }: sql.ClosingRow): Counted => JSON.parse(statement) as Counted;

function closingOf(row: sql.ClosingRow): bus.Closing {
  const { lines, issues } = countsOf(row);
  return {
    closingId: row.closing_id,
    accountId: row.account_id,
    kind: row.kind,
    fromDate: row.from_date,
    toDate: row.to_date,
    closedBy: { userId: row.closed_by, name: row.closed_by_name },
    closedAtMs: row.closed_at.getTime(),
    reason: row.reason,
    lines: lines.count,
    issues: issues.count,
    afterClosing: row.after_closing,
    statement: row.statement,
    signature: {
      algorithm: "Ed25519",
      keyId: row.key_id,
      publicKey: base64url(row.public_key),
      value: base64url(row.signature),
    },
  };
}
