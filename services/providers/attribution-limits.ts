/**
 * The most that one person may attribute alone. Above this limit an attribution needs two people (proposals.ts). The
 * owner sets the limit for each currency; the audit log has every change.
 */
import { currencyExponent } from "../../machines/currencies.ts";
import { formatExactAmount } from "../../machines/currency.ts";
import type * as bus from "../bus/messages/attribution-limits.ts";
import { personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as issueMessages from "../bus/messages/issues.ts";
import type { Handler } from "../bus/operation.ts";
import type { Queryable, Transaction } from "../db/pool.ts";
import { recordEvents } from "../db/provider-audit-log.ts";
import { getIssue as getIssueOfAny, issueConflict } from "../issues/life-cycle.ts";
import type { IssueRow } from "../issues/sql/issues.ts";
import type { ProvidersDeps } from "./deps.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import * as sql from "./sql/attribution-limits.ts";

type LimitsDeps = Pick<ProvidersDeps, "database">;

/** Minor units that one person may attribute of a currency for which the organization has set nothing. */
export function aloneUnlessSet(currency: string): bigint {
  const exponent = currencyExponent(currency) ?? 2;
  const { aloneUnits, aloneUnitsWithoutDecimals } = PROVIDER_LIMITS;
  return BigInt(exponent === 0 ? aloneUnitsWithoutDecimals : aloneUnits) * 10n ** BigInt(exponent);
}

async function aloneUpTo(
  database: Queryable,
  key: { readonly organizationId: number; readonly currency: string },
): Promise<bigint> {
  const set = await sql.findLimit(database, key);
  return set === undefined ? aloneUnlessSet(key.currency) : BigInt(set.alone_up_to_minor);
}

/** The operator learns with the issue whether a second person is needed. Refuses with `permission_denied`, `not_found`. */
export const getIssue: Handler<LimitsDeps, typeof issueMessages.getIssue> = async ({ database }, request) => {
  const found = await getIssueOfAny({ database }, request);
  const { currency } = found.issue;
  if (currency === null) return { ...found, aloneUpToMinor: null };
  const { organizationId } = request.caller;
  return { ...found, aloneUpToMinor: (await aloneUpTo(database, { organizationId, currency })).toString() };
};

/** Refuses with `conflict` an amount that one person may not attribute alone. */
export async function requireAlone(
  tx: Transaction,
  issue: Pick<IssueRow, "organization_id" | "amount_minor" | "currency">,
): Promise<void> {
  const { organization_id: organizationId, amount_minor: amountMinor, currency } = issue;
  if (amountMinor === null || currency === null) throw new Error("An issue without an amount cannot be attributed.");
  const most = await aloneUpTo(tx, { organizationId, currency });
  if (BigInt(amountMinor) <= most) return;
  const limit = `${formatExactAmount(most, currency)} ${currency}`;
  const detail = `Above ${limit} two people attribute money: propose it, and another person confirms it.`;
  throw issueConflict("second_person_needed", detail);
}

/** Refuses with `permission_denied`. */
export const listAttributionLimits: Handler<LimitsDeps, typeof bus.listAttributionLimits> = async (deps, request) => {
  const { caller } = request;
  const { database } = deps;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const [rows, currencies] = await Promise.all([
    sql.listAttributionLimits(database, organizationId),
    sql.listCurrencies(database, organizationId),
  ]);
  const known = new Map(rows.map((row) => [row.currency, row]));
  const all = [...new Set([...known.keys(), ...currencies])].toSorted();
  return { limits: all.map((currency) => limitOf(currency, known.get(currency))) };
};

/** Refuses with `permission_denied`, `invalid_request`. */
export const setAttributionLimit: Handler<LimitsDeps, typeof bus.setAttributionLimit> = async (deps, request) => {
  const { caller, currency, aloneUpToMinor, reason } = request;
  const { database } = deps;
  const { organizationId } = requirePermission(caller, "organization.manage");
  const row = await database.begin(async (tx) => {
    await sql.lockLimits(tx, organizationId);
    const before = await sql.findLimit(tx, { organizationId, currency });
    // The same request again, because its answer was lost.
    const isSame = aloneUpToMinor === null ? before === undefined : before?.alone_up_to_minor === aloneUpToMinor;
    if (isSame && (before === undefined || (before.changed_by === caller.userId && before.reason === reason)))
      return before;
    const now =
      aloneUpToMinor === null
        ? await sql.removeLimit(tx, { organizationId, currency })
        : await sql.setAttributionLimit(tx, { organizationId, currency, aloneUpToMinor, by: caller, reason });
    const data = { currency, reason, from: before?.alone_up_to_minor ?? null, to: aloneUpToMinor };
    const subject = { kind: "organization" as const, id: organizationId };
    await recordEvents(tx, [
      { organizationId, actor: personActor(caller), action: "attribution_limit_set", subject, data },
    ]);
    return now ?? undefined;
  });
  return { limit: limitOf(currency, row) };
};

function limitOf(currency: string, row: sql.LimitRow | undefined): bus.AttributionLimit {
  if (row === undefined) return { currency, aloneUpToMinor: aloneUnlessSet(currency).toString(), set: null };
  const { alone_up_to_minor: aloneUpToMinor, changed_by: byId, changed_by_name: byName, reason } = row;
  return { currency, aloneUpToMinor, set: { byId, byName, atMs: row.changed_at.getTime(), reason } };
}
