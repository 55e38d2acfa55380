/** The accounts at providers and banks whose statements are imported: lists, creates and changes them. */
import { currencyExponent } from "../../machines/currencies.ts";
import { type FieldError, UNKNOWN_TIME_ZONE } from "../bus/field-errors.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/statement-accounts.ts";
import type { RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { canonicalTimeZone } from "../bus/time-zones.ts";
import type { Transaction } from "../db/pool.ts";
import type { ReconciliationHandler } from "./deps.ts";
import * as sql from "./sql/accounts.ts";
import { wantRunsOfOpenDays } from "./sql/wanted-runs.ts";

/** Of one organization: a chain of some hundred filials has one or two at each. */
const MOST_ACCOUNTS = 2_000;

type CreateRequest = RequestOf<typeof bus.createStatementAccount>;
type ChangeRequest = RequestOf<typeof bus.changeStatementAccount>;

/** Refuses with `permission_denied`. */
export const listStatementAccounts: ReconciliationHandler<typeof bus.listStatementAccounts> = async (deps, request) => {
  const { database } = deps;
  const { caller, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  // One row more shows whether there is a further page.
  const rows = await sql.listStatementAccounts(database, { organizationId, sinceId, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(accountOf), limit);
  return { accounts: page, hasMore };
};

/** Refuses with `permission_denied` or `not_found`. */
export const getStatementAccount: ReconciliationHandler<typeof bus.getStatementAccount> = async (deps, request) => {
  const { database } = deps;
  const { caller, accountId } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  return { account: accountOf(existing(await sql.getStatementAccount(database, { organizationId, accountId }))) };
};

/**
 * Refuses with `permission_denied`, `not_found` (the filial or the provider config), `invalid_request`, or `conflict` (the
 * account is there already, another one is of the config, the config is of another mode or filial, or there are too many).
 */
export const createStatementAccount: ReconciliationHandler<typeof bus.createStatementAccount> = async (
  { database },
  request,
) => {
  const { caller, currency, timeZone } = request;
  requirePermission(caller, "reconciliation.manage");
  checkFields({ currency, timeZone });
  const { organizationId } = caller;
  const row = await database.begin(async (transaction) => {
    await requirePlace(transaction, request);
    if ((await sql.countAccounts(transaction, organizationId)) >= MOST_ACCOUNTS) {
      throw conflict(`An organization has at most ${MOST_ACCOUNTS} statement accounts.`);
    }
    const { filialId, provider, reference, name, mode, configId, settlementDelayDays } = request;
    const facts = { organizationId, filialId, provider, reference, name, currency, mode, configId };
    const created = await sql.createStatementAccount(transaction, {
      ...facts,
      settlementDelayDays,
      timeZone: timeZone === undefined ? undefined : canonicalTimeZone(timeZone),
    });
    if (created !== undefined) return created;
    throw conflict("There is an account of this provider, mode and reference already, or one of this provider config.");
  });
  return { account: accountOf(row) };
};

async function requirePlace(
  transaction: Transaction,
  { caller: { organizationId }, filialId, configId, mode }: CreateRequest,
): Promise<void> {
  if (filialId !== undefined) existing(await sql.hasFilial(transaction, { organizationId, filialId }), "filial_id");
  if (configId === undefined) return;
  const config = existing(await sql.findAccountConfig(transaction, { organizationId, configId }), "config_id");
  if (config.mode !== mode) throw conflict(`The provider config is of the mode \`${config.mode}\`.`);
  if (filialId !== undefined && config.filial_id !== filialId) {
    throw conflict("The provider config is of another filial; leave out the filial, or name that one.");
  }
}

/**
 * Runs follow when the change decides which payments the statements of this account, or of those beside it, should show. Refuses
 * with `permission_denied`, `not_found` (the account or the filial), `invalid_request`, or `conflict`.
 */
export const changeStatementAccount: ReconciliationHandler<typeof bus.changeStatementAccount> = async (
  { database },
  { caller, accountId, name, filialId, currency, settlementDelayDays, timeZone, lastDay },
) => {
  requirePermission(caller, "reconciliation.manage");
  checkFields({ currency, timeZone });
  const { organizationId } = caller;
  const row = await database.begin(async (transaction) => {
    const before = existing(await sql.lockAccount(transaction, { organizationId, accountId }));
    if (filialId !== undefined && filialId !== null)
      existing(await sql.hasFilial(transaction, { organizationId, filialId }), "filial_id");
    const next = {
      name: name ?? before.name,
      filial_id: filialId === undefined ? before.filial_id : filialId,
      currency: currency === undefined ? before.currency : currency,
      settlement_delay_days: settlementDelayDays ?? before.settlement_delay_days,
      time_zone: timeZone === undefined ? before.time_zone : timeZone && (canonicalTimeZone(timeZone) ?? null),
      last_day: lastDay === undefined ? before.last_day : lastDay,
    };
    const readsOtherwise = next.currency !== before.currency || next.time_zone !== before.time_zone;
    if (readsOtherwise && (await sql.hasImports(transaction, accountId))) {
      throw conflict("Its lines have been read with this currency and time zone; withdraw its imports first.");
    }
    const expectsOthers =
      next.filial_id !== before.filial_id ||
      next.settlement_delay_days !== before.settlement_delay_days ||
      next.last_day !== before.last_day;
    const besideBefore = expectsOthers ? await sql.listAccountsBeside(transaction, accountId) : [];
    const changed = await sql.changeStatementAccount(transaction, accountId, next);
    if (expectsOthers) {
      const besideNow = await sql.listAccountsBeside(transaction, accountId);
      await wantRunsOfOpenDays(transaction, [...new Set([...besideBefore, ...besideNow])]);
    }
    return changed;
  });
  return { account: accountOf(row) };
};

function checkFields({ currency, timeZone }: Partial<Pick<ChangeRequest, "currency" | "timeZone">>): void {
  const errors: FieldError[] = [];
  if (typeof currency === "string" && currencyExponent(currency) === undefined) {
    errors.push({
      pointer: "/currency",
      code: "unknown_currency",
      detail: "this is no currency of ISO 4217 that the service knows",
    });
  }
  if (typeof timeZone === "string" && canonicalTimeZone(timeZone) === undefined) {
    errors.push(UNKNOWN_TIME_ZONE);
  }
  if (errors.length > 0) throw new RefusedError({ code: "invalid_request", errors });
}

const conflict = (detail: string): RefusedError => new RefusedError({ code: "conflict", detail });

function accountOf(row: sql.AccountRow): bus.StatementAccount {
  return {
    accountId: row.account_id,
    filialId: row.filial_id,
    provider: row.provider,
    reference: row.reference,
    name: row.name,
    currency: row.currency,
    mode: row.mode,
    configId: row.config_id,
    settlementDelayDays: row.settlement_delay_days,
    timeZone: row.time_zone,
    lastDay: row.last_day,
    createdAtMs: row.created_at.getTime(),
  };
}
