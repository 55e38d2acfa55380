/** Raising an issue of the same identity, once or many thousands of times in one statement. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Database, Transaction } from "../../services/db/pool.ts";
import { endIssues } from "../../services/issues/sql/ending.ts";
import { CANDIDATE_COLUMNS, type RaisedIssue, raiseIssues } from "../../services/issues/sql/raise.ts";
import { openClone } from "../support/open-clone.ts";

let sql: Database;

beforeAll(async () => {
  const clone = await openClone();
  sql = clone.sql;
  await sql`insert into organizations (name) values ('Bistro')`;
  return clone.stop;
});

interface Difference {
  readonly subject?: string;
  readonly account?: string;
  readonly station?: number | null;
  readonly kind?: string;
  readonly amountMinor?: string;
  readonly currency?: string;
  readonly status?: string;
  readonly type?: string;
  readonly note?: string;
  readonly lineId?: number;
  readonly orderId?: number;
}

/** Raises the differences as a run does: from a temporary table. */
const raise = (differences: readonly Difference[]): Promise<readonly RaisedIssue[]> =>
  sql.begin(async (tx) => {
    await tx.unsafe(`create temporary table candidates (${CANDIDATE_COLUMNS}) on commit drop`);
    for (const one of differences) {
      await tx`
        insert into candidates (organization_id, account_key, station_id, kind, subject_key, evidence_status, evidence_type,
          amount_minor, currency, source, order_id, evidence, is_money)
        values (1, ${one.account ?? "statement:1"}, ${one.station ?? null}, ${one.kind ?? "fee_mismatch"}, ${one.subject ?? "line:1"},
          ${one.status ?? "paid"}, ${one.type ?? "payment"}, ${one.amountMinor ?? "1250"}::bigint, ${one.currency ?? "EUR"},
          'statement', ${one.orderId ?? null},
          ${tx.json({ statement: { lineIds: [one.lineId ?? 1], differences: [], facts: { note: one.note ?? "" } } })}, false)`;
    }
    return await raiseIssues(tx, tx`select * from candidates`);
  });

async function raiseOne(difference: Difference): Promise<RaisedIssue> {
  const [raised] = await raise([difference]);
  if (raised === undefined) throw new Error("No issue was raised.");
  return raised;
}

interface StoredIssue {
  readonly status: string;
  readonly amount: string;
  readonly note: string;
  readonly line_id: string;
  readonly order_id: number | null;
  readonly prior_evidence: readonly { readonly amount_minor: string }[];
  readonly last_seen_at: Date;
}

async function rowOf(issueId: number): Promise<StoredIssue> {
  const [row] = await sql<StoredIssue[]>`
    select status, kind, amount_minor::text as amount, assignee_id, supersedes_id, superseded_by, reason, generation,
      prior_evidence, evidence #>> '{statement,facts,note}' as note,
      evidence #>> '{statement,lineIds,0}' as line_id, order_id, last_seen_at
    from issues where issue_id = ${issueId}`;
  if (row === undefined) throw new Error("There is no such issue.");
  return row;
}

const decide = (issueId: number, status: "closed" | "attributed" = "closed") =>
  sql`update issues set status = ${status}, resolved_at = now(), resolved_by = 7, reason = 'checked' where issue_id = ${issueId}`;

describe("the same difference again", () => {
  test("an open issue: marks it as seen, with the line and the payment that the statement has now", async () => {
    const first = await raiseOne({ subject: "seen", orderId: 1 });
    expect(first.outcome).toBe("opened");
    const before = await rowOf(first.issueId);
    const again = { subject: "seen", note: "other words", lineId: 2, orderId: 2 };
    expect(await raiseOne(again)).toEqual({ ...first, outcome: "seen" });
    const after = await rowOf(first.issueId);
    expect(after).toMatchObject({
      status: "open",
      note: "other words",
      line_id: "2",
      order_id: 2,
      prior_evidence: [],
    });
    expect(after.last_seen_at.getTime()).toBeGreaterThan(before.last_seen_at.getTime());
  });

  test.each(["closed", "attributed"] as const)("a %s issue: the decision stays, however often", async (status) => {
    const subject = `stays ${status}`;
    const { issueId } = await raiseOne({ subject, note: "decided", orderId: 1 });
    await decide(issueId, status);
    for (const lineId of [2, 3, 4])
      expect(await raiseOne({ subject, lineId, orderId: 2 })).toMatchObject({ issueId, outcome: "seen" });
    const decided = { status, reason: "checked", superseded_by: null, note: "decided", order_id: 1 };
    // Its line has another id after its file was withdrawn and imported again.
    expect(await rowOf(issueId)).toMatchObject({ ...decided, line_id: "4" });
  });

  test("upper or lower case, and spaces around a text: the same evidence", async () => {
    const { issueId } = await raiseOne({ subject: "letters", currency: "EUR", status: "Settled", type: "Charge" });
    const again = { subject: "letters", currency: " eur ", status: "settled ", type: "CHARGE" };
    expect(await raiseOne(again)).toMatchObject({ issueId, outcome: "seen" });
  });
});

describe("changed evidence", () => {
  test.each([
    ["the amount", { amountMinor: "1251" }],
    ["the currency", { currency: "CHF" }],
    ["the status", { status: "refunded" }],
    ["the type", { type: "fee" }],
  ] as const)("of a closed issue, by %s: a new issue that names it; the closed one stays", async (what, more) => {
    const subject = `changed by ${what}`;
    const { issueId } = await raiseOne({ subject });
    await decide(issueId);
    const news = await raiseOne({ subject, ...more });
    expect(news).toMatchObject({ outcome: "superseded", supersedesId: issueId });
    expect(await rowOf(issueId)).toMatchObject({ status: "closed", reason: "checked", superseded_by: news.issueId });
    expect(await rowOf(news.issueId)).toMatchObject({ status: "open", supersedes_id: issueId, generation: 2 });
    expect(await raiseOne({ subject, ...more })).toMatchObject({ issueId: news.issueId, outcome: "seen" });
  });

  test("of a closed issue, and back: it is seen again and takes its place again, until the evidence changes once more", async () => {
    const first = { subject: "and back" };
    const other = { ...first, amountMinor: "1251" };
    const { issueId } = await raiseOne(first);
    await decide(issueId);
    const news = await raiseOne(other);
    expect(await raiseOne(first)).toEqual({ issueId, outcome: "seen", supersedesId: null });
    expect(await rowOf(issueId)).toMatchObject({ status: "closed", superseded_by: null });
    // The run that finds the first one ends the other one.
    await sql.begin((tx) =>
      endIssues(tx, { which: tx`select ${news.issueId}::bigint as issue_id`, reason: "Explained." }),
    );
    expect(await raiseOne(first)).toMatchObject({ issueId, outcome: "seen" });

    expect(await raiseOne(other)).toMatchObject({ issueId: news.issueId, outcome: "returned" });
    expect(await rowOf(issueId)).toMatchObject({ status: "closed", superseded_by: news.issueId });
    await decide(news.issueId);
    expect(await raiseOne(first)).toMatchObject({ issueId, outcome: "seen" });
    expect([await rowOf(issueId), await rowOf(news.issueId)]).toMatchObject([
      { superseded_by: null },
      { status: "closed", superseded_by: issueId },
    ]);
    expect(await raiseOne(other)).toMatchObject({ issueId: news.issueId, outcome: "seen" });
    const third = await raiseOne({ ...first, amountMinor: "1252" });
    expect(third).toMatchObject({ outcome: "superseded", supersedesId: news.issueId });
    expect([await rowOf(issueId), await rowOf(news.issueId), await rowOf(third.issueId)]).toMatchObject([
      { superseded_by: news.issueId },
      { superseded_by: third.issueId },
      { status: "open", superseded_by: null, generation: 3 },
    ]);
  });

  test("an open issue: replaces its evidence and keeps the earlier, up to a bound", async () => {
    const { issueId } = await raiseOne({ subject: "open", note: "the first" });
    for (let cents = 0; cents < 12; cents += 1)
      expect(await raiseOne({ subject: "open", amountMinor: `${100 + cents}`, note: `${cents}` })).toMatchObject({
        issueId,
        outcome: "changed",
      });
    const row = await rowOf(issueId);
    expect(row).toMatchObject({ status: "open", amount: "111", note: "11" });
    const kept = row.prior_evidence.map(({ amount_minor }) => amount_minor);
    expect(kept).toEqual(["103", "104", "105", "106", "107", "108", "109", "110"]);
  });
});

describe("a decision at the same moment", () => {
  /** Raises the difference while a person's transaction has the issue locked. The person commits first. */
  async function raiseDuring(difference: Difference, decision: (tx: Transaction) => Promise<unknown>) {
    const isWaiting = async (): Promise<boolean> =>
      (
        await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      ).count > 0;
    let raised: Promise<readonly RaisedIssue[]> | undefined;
    await sql.begin(async (tx) => {
      await decision(tx);
      raised = raise([difference]);
      await expect.poll(isWaiting, { timeout: 10_000, interval: 10 }).toBe(true);
    });
    return await raised;
  }

  test("a closing, and other evidence: the closing keeps the evidence that was seen, and a new issue names it", async () => {
    const { issueId } = await raiseOne({ subject: "closed meanwhile" });
    const raised = await raiseDuring({ subject: "closed meanwhile", amountMinor: "50000" }, async (tx) => {
      await tx`update issues set status = 'closed', resolved_at = now(), resolved_by = 7, reason = 'checked' where issue_id = ${issueId}`;
    });
    expect(raised).toMatchObject([{ outcome: "superseded", supersedesId: issueId }]);
    expect(await rowOf(issueId)).toMatchObject({ status: "closed", amount: "1250" });
  });

  test("an attribution that begins, and other evidence: the amount at the payment seam does not change", async () => {
    const { issueId } = await raiseOne({ subject: "attributed meanwhile" });
    const raised = await raiseDuring({ subject: "attributed meanwhile", amountMinor: "50000" }, async (tx) => {
      await tx`update issues set attribution = '{}', attributed_since = now() where issue_id = ${issueId}`;
    });
    expect(await rowOf(issueId)).toMatchObject({ status: "open", amount: "1250", prior_evidence: [] });
    expect(raised).toMatchObject([{ issueId, outcome: "seen" }]);
  });

  test("an end, and the same evidence: the issue returns", async () => {
    const { issueId } = await raiseOne({ subject: "ended meanwhile" });
    const raised = await raiseDuring({ subject: "ended meanwhile" }, (tx) =>
      endIssues(tx, { which: tx`select ${issueId}::bigint as issue_id`, reason: "The import was withdrawn." }),
    );
    expect(raised).toMatchObject([{ issueId, outcome: "returned" }]);
    expect(await rowOf(issueId)).toMatchObject({ status: "open", reason: null });
  });
});

describe("an issue whose cause had ended", () => {
  test("returns as it was, with its assignee", async () => {
    const { issueId } = await raiseOne({ subject: "gone" });
    await sql`update issues set status = 'assigned', assignee_id = 9 where issue_id = ${issueId}`;
    const ended = await sql.begin((tx) =>
      endIssues(tx, { which: tx`select ${issueId}::bigint as issue_id`, reason: "The import was withdrawn." }),
    );
    expect(ended).toMatchObject([{ issue_id: issueId }]);
    expect(await rowOf(issueId)).toMatchObject({ status: "ended", reason: "The import was withdrawn." });
    expect(await raiseOne({ subject: "gone", lineId: 2 })).toMatchObject({ issueId, outcome: "returned" });
    expect(await rowOf(issueId)).toMatchObject({ status: "assigned", assignee_id: 9, reason: null, line_id: "2" });
  });

  test("stays closed when a person has decided it", async () => {
    const { issueId } = await raiseOne({ subject: "decided" });
    await decide(issueId);
    const which = { reason: "The import was withdrawn." };
    const end = () => sql.begin((tx) => endIssues(tx, { which: tx`select ${issueId}::bigint as issue_id`, ...which }));
    expect(await end()).toEqual([]);
    expect(await raiseOne({ subject: "decided" })).toMatchObject({ outcome: "seen" });
    expect(await rowOf(issueId)).toMatchObject({ status: "closed", reason: "checked" });
  });
});

describe("identity", () => {
  test("two rows with one identity and other evidence: the same one counts in either order", async () => {
    const rows = [{ type: "payment" }, { type: "refund" }].map((one) => ({ ...one, subject: "twice" }));
    const [raised] = await raise(rows);
    await decide(raised?.issueId ?? 0);
    expect(await raise(rows.toReversed())).toMatchObject([{ issueId: raised?.issueId, outcome: "seen" }]);
  });

  test("account, station, kind and subject: a difference in one of them makes another issue", async () => {
    const base = { subject: "identity", station: 1 };
    const variants = [base, { ...base, station: 2 }, { ...base, station: null }, { ...base, account: "statement:2" }];
    const raised = await raise([...variants, { ...base, kind: "rounding" }, { ...base, subject: "identity 2" }]);
    expect(raised.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 6 }, () => "opened"));
    expect(new Set(raised.map(({ issueId }) => issueId)).size).toBe(6);
  });

  test("several transactions at once: one of them opens the issue", async () => {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => raise([{ subject: "at once" }])));
    expect(outcomes.flat().filter(({ outcome }) => outcome === "opened")).toHaveLength(1);
    expect(await sql`select 1 from issues where subject_key = 'at once'`).toHaveLength(1);
  });

  test("thousands of differences: one statement raises them, and a repetition changes nothing", async () => {
    const raiseAll = () =>
      sql.begin((tx) =>
        raiseIssues(
          tx,
          tx`
            select 1::bigint, 'statement:1', null::bigint, 'missing_in_statement', 'intent:' || n, 'paid', 'payment', n::bigint,
              'EUR', 'statement', null::bigint, 1::bigint, n::bigint, null::bigint, '', '{}'::jsonb, false, null::text, null::bigint
            from generate_series(1, 5000) n`,
        ),
      );
    expect((await raiseAll()).filter(({ outcome }) => outcome === "opened")).toHaveLength(5000);
    await sql`update issues set status = 'closed', resolved_at = now() where kind = 'missing_in_statement' and intent_id <= 100`;
    expect((await raiseAll()).filter(({ outcome }) => outcome === "seen")).toHaveLength(5000);
  });
});
