/** The report of a filial's day, in sums that add up: what was settled, what the statements booked, and what is open. */
import { UNKNOWN_TIME_ZONE } from "../bus/field-errors.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/day-report.ts";
import { ISSUE_KINDS } from "../bus/messages/issues.ts";
import type { Handler } from "../bus/operation.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { canonicalTimeZone } from "../bus/time-zones.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { wordIn } from "./matches.ts";
import * as sql from "./sql/day-report.ts";

/** For filials whose accounts name no time zone, or several. */
const DEFAULT_TIME_ZONE = "UTC";

/** Refuses with `permission_denied`, `not_found`, `invalid_request`. */
export const reportDay: Handler<Pick<ReconciliationDeps, "database">, typeof bus.reportDay> = async (deps, request) => {
  const { database } = deps;
  const { caller, filialId, day, mode, startsAtMinute, timeZone: wanted } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const given = wanted === undefined ? undefined : canonicalTimeZone(wanted);
  if (wanted !== undefined && given === undefined) {
    throw new RefusedError({ code: "invalid_request", errors: [UNKNOWN_TIME_ZONE] });
  }
  const known = existing(await sql.findFilialZone(database, { organizationId, filialId, mode }), "filial_id");
  const timeZone = given ?? known.time_zone ?? DEFAULT_TIME_ZONE;
  const { from, to } = await sql.findInstants(database, { day, timeZone, startsAtMinute });
  const filialDay: sql.FilialDay = { organizationId, filialId, mode, day, from, to };
  const [accounts, settled, lines, issues] = await Promise.all([
    sql.listFilialAccounts(database, filialDay),
    sql.sumSettled(database, filialDay),
    sql.sumLines(database, filialDay),
    sql.sumOpenIssues(database, filialDay),
  ]);
  const currencies = new Set([...settled, ...lines, ...issues].map(({ currency }) => currency));
  return {
    filialId,
    day,
    mode,
    timeZone,
    fromMs: from.getTime(),
    toMs: to.getTime(),
    accounts: accounts.map((row) => ({ accountId: row.account_id, name: row.name, isClosed: row.is_closed })),
    openWithoutAmount: kindsOf(issues, "").map(({ kind, count }) => ({ kind, count })),
    totals: [...currencies]
      .filter((currency) => currency !== "")
      .toSorted()
      .map((currency) => totalsOf(currency, { settled, lines, issues })),
  };
};

type Parts = readonly sql.PartRow[];

function totalsOf(
  currency: string,
  { settled, lines, issues }: { readonly settled: Parts; readonly lines: Parts; readonly issues: Parts },
): bus.DayTotals {
  const of = (parts: Parts, name: string) => {
    const { count = 0, minor = "0" } = parts.find((row) => row.currency === currency && row.part === name) ?? {};
    return { count, minor };
  };
  return {
    currency,
    settled: {
      cash: of(settled, "cash"),
      attestedTerminal: of(settled, "attested_terminal"),
      smartPos: of(settled, "smart_pos"),
      dynamicQr: of(settled, "dynamic_qr"),
      total: of(settled, "total"),
    },
    electronic: {
      matched: of(settled, "matched"),
      differing: of(settled, "differing"),
      expected: of(settled, "expected"),
      total: of(settled, "electronic"),
    },
    statement: {
      payments: of(lines, "payments"),
      refunds: of(lines, "refunds"),
      chargebacks: of(lines, "chargebacks"),
      fees: of(lines, "fees"),
      payouts: of(lines, "payouts"),
      bank: of(lines, "bank"),
      other: of(lines, "other"),
      total: of(lines, "total"),
    },
    tips: of(lines, "tips"),
    openDifferences: { kinds: kindsOf(issues, currency), total: of(issues, "total") },
  };
}

const kindsOf = (issues: Parts, currency: string) =>
  issues
    .filter((row) => row.currency === currency && row.part !== "total")
    .map(({ part, count, minor }) => ({ kind: wordIn(ISSUE_KINDS, part), count, minor }));
