/** Periods of accounts: open, ready to close, or closed, with what each still lacks. */
import { requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/reconciliation-periods.ts";
import type { Handler } from "../bus/operation.ts";
import { existing, invalidField } from "../bus/refusals.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { PERIOD_LIMITS } from "./limits.ts";
import { hasAccount } from "./sql/lines.ts";
import * as sql from "./sql/periods.ts";

type PeriodDeps = Pick<ReconciliationDeps, "database">;

const DAY_MS = 24 * 3_600_000;

/** The day, or the month that begins on the day. Refuses with `invalid_request` a month that begins on another day. */
export function periodOf(kind: sql.PeriodKind, fromDate: string): sql.Period {
  if (kind === "day") return { kind, fromDate, toDate: fromDate };
  if (!fromDate.endsWith("-01")) throw invalidField("/from_date", "wrong_format", "Must be the first day of a month.");
  const [year = 0, month = 0] = fromDate.split("-").map(Number);
  const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return { kind, fromDate, toDate: `${fromDate.slice(0, 8)}${String(last).padStart(2, "0")}` };
}

/** Refuses with `permission_denied`, `not_found`, `invalid_request`. */
export const listPeriods: Handler<PeriodDeps, typeof bus.listPeriods> = async (deps, request) => {
  const { caller, kind, fromDate, toDate, accountId, filialId, after, limit } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  if (accountId !== undefined) existing(await hasAccount(deps.database, { organizationId, accountId }), "account_id");
  const days = (Date.parse(toDate) - Date.parse(fromDate)) / DAY_MS;
  if (days < 0) throw invalidField("/to_date", "ends_before_start", "Must not be before from_date.");
  if (days >= PERIOD_LIMITS.days[kind]) {
    const { [kind]: most } = PERIOD_LIMITS.days;
    throw invalidField("/to_date", "period_too_long", `Must be within ${most} days of from_date.`, { limit: most });
  }
  const page = { organizationId, kind, fromDate, toDate, accountId, filialId, after, limit: limit + 1 };
  const rows = await sql.listPeriods(deps.database, page);
  const periods = rows.slice(0, limit).map(
    (row): bus.Period => ({
      accountId: row.account_id,
      filialId: row.filial_id,
      kind,
      fromDate: row.from_date,
      toDate: row.to_date,
      state: row.closing_id !== null ? "closed" : row.missing.length === 0 ? "ready" : "open",
      missing: [...row.missing],
      closingId: row.closing_id,
    }),
  );
  return { periods, hasMore: rows.length > limit };
};

const SENTENCES: Readonly<Record<bus.Missing["code"], (missing: bus.Missing) => string>> = {
  settlement_delay: ({ day }) => `the provider may book its payments before ${day}`,
  statement_missing: ({ count, day }) => `days that no statement covers: ${count}, the first is ${day}`,
  import_held: ({ count }) => `files that are held: ${count}`,
  import_unfinished: ({ count }) => `imports that are not finished: ${count}`,
  run_missing: ({ count }) => `lines that no run has compared: ${count}`,
  run_pending: () => "a run over its days has not ended",
  issues_undecided: ({ count }) => `issues that are not decided: ${count}`,
  payments_expected: ({ count }) => `settled payments in no statement: ${count} (later statements may have them)`,
  settlement_pending: ({ count }) => `settlements without an outcome yet: ${count}`,
};

/** A part of a sentence. */
export const missingSentence = (missing: bus.Missing): string => SENTENCES[missing.code](missing);
