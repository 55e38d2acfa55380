/** Matches and candidates as people read and decide them. A decision counts from the next run, which starts by itself. */
import { type Caller, personActor, requirePermission } from "../bus/messages/caller.ts";
import { ISSUE_KINDS } from "../bus/messages/issues.ts";
import * as bus from "../bus/messages/reconciliation-matches.ts";
import { LINE_KINDS } from "../bus/messages/statement-formats.ts";
import type { Handler } from "../bus/operation.ts";
import { readPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import type { Database, Transaction } from "../db/pool.ts";
import { recordEvents } from "../db/provider-audit-log.ts";
import { findAttributed, lockDecisions } from "../issues/sql/lines-of-money.ts";
import * as sql from "./sql/matches.ts";
import { wantRunsBeside } from "./sql/wanted-runs.ts";

interface MatchesDeps {
  readonly database: Database;
}

/** Newest first. Refuses with `permission_denied`. */
export const listMatches: Handler<MatchesDeps, typeof bus.listMatches> = async ({ database }, request) => {
  const { caller, beforeId, limit, ...filter } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const { accountId, lineId, transactionId } = filter;
  const { page, hasMore } = await readPage<bus.Match>(limit, async (last, count) => {
    const wanted = { organizationId, accountId, lineId, transactionId, beforeId: last?.matchId ?? beforeId };
    return (await sql.listMatches(database, { ...wanted, limit: count })).map(matchOf);
  });
  return { matches: page, hasMore };
};

/** Refuses with `permission_denied`. */
export const listCandidates: Handler<MatchesDeps, typeof bus.listCandidates> = async ({ database }, request) => {
  const { caller, accountId, lineId, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const { page, hasMore } = await readPage<bus.LineCandidates>(limit, async (last, count) => {
    const wanted = { organizationId, accountId, lineId, sinceId: last?.line.lineId ?? sinceId, limit: count };
    return (await sql.listCandidates(database, wanted)).map(candidatesOf);
  });
  return { lines: page, hasMore };
};

/** The key of a late report, or of the issue of a callback. */
const HAS_SETTLED_NOTHING = /^(?:late|issue):/;

/** Refuses with `permission_denied`, `not_found`, `invalid_request` or `conflict` with a reason of `MATCH_CONFLICTS`. */
export const confirmMatch: Handler<MatchesDeps, typeof bus.confirmMatch> = async ({ database }, request) => {
  const { caller, lineIds, paymentKeys, reason } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const asked = { lineIds: [...new Set(lineIds)], paymentKeys: [...new Set(paymentKeys)] };
  if (asked.lineIds.length > 1 && asked.paymentKeys.length > 1) {
    const detail = "A match has one line or one payment: confirm the parts one by one.";
    throw conflict("several_on_both_sides", detail);
  }
  return await database.begin(async (tx) => {
    await lockDecisions(tx, organizationId);
    const { accountId, lines } = await requireLines(tx, organizationId, asked.lineIds);
    // A statement may divide the money that has paid an order: the parts are the payment of that order.
    const [paymentKey, ...others] = asked.paymentKeys;
    const attributed = await findAttributed(tx, asked.lineIds, others.length === 0 ? paymentKey : undefined);
    if (attributed !== undefined) {
      const detail = `The money of a line pays an order by issue ${attributed.issue_id}: leave this line out.`;
      throw conflict("line_attributed", detail);
    }
    if (asked.paymentKeys.some((key) => HAS_SETTLED_NOTHING.test(key))) {
      const detail =
        "A device or a provider has reported this payment, and no order was settled with it: reject it, then attribute the money or pay it back.";
      throw conflict("nothing_settled", detail);
    }
    const payments = await sql.findPayments(tx, { accountId, ...asked });
    existing(payments.length >= asked.paymentKeys.length, "payment_keys");
    requireEqualSums(lines, payments);
    const members = { organizationId, accountId, ...asked };
    const taken = await sql.findTaken(tx, members);
    if (taken.has_line)
      throw conflict("line_matched", "A line is matched with another payment: reject that match first.");
    if (taken.has_payment)
      throw conflict("payment_matched", "A payment is matched with another line: reject that match first.");
    return await decide(tx, { caller, lines, decision: "confirmed", reason, members });
  });
};

/**
 * Refuses with `permission_denied`, `not_found` (the line, or what is no candidate and no match of it), `invalid_request` or, for
 * the transaction that the line's money has paid, `conflict`.
 */
export const rejectMatch: Handler<MatchesDeps, typeof bus.rejectMatch> = async ({ database }, request) => {
  const { caller, lineId, paymentKey, reason } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  return await database.begin(async (tx) => {
    await lockDecisions(tx, organizationId);
    const { accountId, lines } = await requireLines(tx, organizationId, [lineId]);
    existing(await sql.isRelated(tx, { lineId, paymentKey }), "payment_key");
    const attributed = await findAttributed(tx, [lineId]);
    if (paymentKey === `transaction:${attributed?.transaction_id}`) {
      const detail = `This payment was settled with the line's money by issue ${attributed?.issue_id}; that stays.`;
      throw conflict("line_attributed", detail);
    }
    const members = { organizationId, accountId, lineIds: [lineId], paymentKeys: [paymentKey] };
    return await decide(tx, { caller, lines, decision: "rejected", reason, members });
  });
};

/** The lines, locked, and their account. Refuses with `not_found`, also for lines of several accounts. */
async function requireLines(
  tx: Transaction,
  organizationId: number,
  lineIds: readonly number[],
): Promise<{ readonly accountId: number; readonly lines: readonly sql.DecidedLine[] }> {
  const lines = await sql.lockLines(tx, { organizationId, lineIds });
  const { account_id: accountId } = existing(lines[0], "line_ids");
  const areOfOneAccount = lines.every((line) => line.account_id === accountId);
  existing(lines.length >= lineIds.length && areOfOneAccount, "line_ids");
  return { accountId, lines };
}

function requireEqualSums(lines: readonly sql.DecidedLine[], payments: readonly sql.DecidedPayment[]): void {
  const currencies = new Set([...lines, ...payments].map(({ currency }) => currency));
  if (currencies.size > 1)
    throw conflict("other_currency", `Lines and payments are in several currencies: ${[...currencies].join(", ")}.`);
  // A payout arrives without the fees that the bank's text names.
  const arePayouts = payments.every(({ source }) => source === "payout");
  const ofLines = sumOf(arePayouts ? lines.map((line) => ({ amount_minor: line.net_minor })) : lines);
  const ofPayments = sumOf(payments);
  if (ofLines === ofPayments) return;
  const difference = `${ofLines - ofPayments} ${[...currencies].join("")}`;
  const detail = `The lines and the payments differ by ${difference} in minor units; only equal sums can be confirmed.`;
  throw conflict("sums_differ", detail);
}

const sumOf = (parts: readonly { readonly amount_minor: string }[]): bigint =>
  parts.reduce((sum, { amount_minor: amountMinor }) => sum + BigInt(amountMinor), 0n);

/** Writes the decision, the audit log and the runs that follow. */
async function decide(
  tx: Transaction,
  decided: {
    readonly caller: Caller;
    readonly lines: readonly sql.DecidedLine[];
    readonly decision: "confirmed" | "rejected";
    readonly reason: string;
    readonly members: sql.Members;
  },
): Promise<{ decisions: bus.MatchDecision[] }> {
  const { caller, lines, decision, reason, members } = decided;
  const rows = await sql.decideMatch(tx, { ...members, decision, decidedBy: caller.userId, reason });
  const days = lines.map(({ booked_on: day }) => day).toSorted();
  await wantRunsBeside(tx, { accountId: members.accountId, fromDate: days[0] ?? "", toDate: days.at(-1) ?? "" });
  const data = { decision, reason, payments: [...members.paymentKeys] };
  await recordEvents(
    tx,
    members.lineIds.map((id) => ({
      organizationId: members.organizationId,
      actor: personActor(caller),
      action: `match_${decision}`,
      subject: { kind: "statement_line" as const, id },
      data,
    })),
  );
  return { decisions: rows.map(decisionOf) };
}

const conflict = (reason: (typeof bus.MATCH_CONFLICTS)[number], detail: string): RefusedError =>
  new RefusedError({ code: "conflict", reason, detail });

export function wordIn<T extends string>(words: readonly T[], word: string): T {
  const found = words.find((one) => one === word);
  if (found === undefined) throw new Error(`The database has the word ${word}, which this program does not know.`);
  return found;
}

const lineOf = (line: sql.LineJson): bus.MatchedLine => ({ ...line, kind: wordIn(LINE_KINDS, line.kind) });
const paymentOf = (payment: sql.PaymentJson): bus.MatchedPayment => ({
  ...payment,
  source: wordIn(bus.PAYMENT_SOURCES, payment.source),
});

function matchOf(row: sql.MatchRow): bus.Match {
  return {
    matchId: row.match_id,
    accountId: row.account_id,
    runId: row.run_id,
    tier: row.tier,
    score: row.score,
    explanation: { ...row.explanation },
    lines: row.lines.map(lineOf),
    payments: row.payments.map(paymentOf),
    createdAtMs: row.created_at.getTime(),
  };
}

function candidatesOf(row: sql.CandidatesRow): bus.LineCandidates {
  return {
    line: lineOf(row.line),
    kind: wordIn(ISSUE_KINDS, row.kind),
    issueId: row.issue_id,
    candidates: row.candidates.map(({ payment, score, explanation }) => ({
      payment: paymentOf(payment),
      score,
      explanation: { ...explanation },
    })),
  };
}

const decisionOf = (row: sql.DecisionRow): bus.MatchDecision => ({
  lineId: row.line_id,
  payment: paymentOf(row.payment),
  decision: row.decision,
  decidedBy: row.decided_by,
  decidedAtMs: row.decided_at.getTime(),
  reason: row.reason,
});
