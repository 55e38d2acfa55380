/** What people do with issues: assign, comment, close one or all that a filter names, and undo; each step in the audit log. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as overview from "../../services/bus/messages/issue-overview.ts";
import * as issues from "../../services/bus/messages/issues.ts";
import { ISSUE_LIMITS } from "../../services/issues/limits.ts";
import { raiseIssues } from "../../services/issues/sql/raise.ts";
import { type Scene, Scenes } from "../providers/emvco-scene.ts";
import { type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "../providers/providers-world.ts";
import { waitFor } from "../support/wait-for.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

/** Raises issues as a run does, without a payment of a provider config. */
async function raiseOf(place: Place, subjects: readonly string[], more: { readonly kind?: string } = {}) {
  const { organizationId, stationId } = place;
  return await world.database.begin((tx) =>
    raiseIssues(
      tx,
      tx`
        select ${organizationId}::bigint, ${`statement:${organizationId}`}::text, ${stationId}::bigint, ${more.kind ?? "fee_mismatch"}::text,
          subject, 'paid', 'fee', -(length(subject) * 100)::bigint, 'EUR', 'statement', null::bigint, 1::bigint, null::bigint,
          null::bigint, '', '{}'::jsonb, false, null::text, null::bigint
        from unnest(${[...subjects]}::text[]) as subject`,
    ),
  );
}

async function openOne(): Promise<{ readonly place: Place; readonly issueId: number }> {
  const place = await world.openPlace();
  const [raised] = await raiseOf(place, ["line"]);
  if (raised === undefined) throw new Error("There is no issue.");
  return { place, issueId: raised.issueId };
}

let people = 0;
async function addOperator({ organizationId }: Place, status = "active", role = "reconciliation_operator") {
  people += 1;
  const [user] = await world.database<{ user_id: number }[]>`
    insert into users (organization_id, email, name, role, password_hash, status)
    values (${organizationId}, ${`person${people}@issues.example`}, 'Rita', ${role}, 'x', ${status}) returning user_id`;
  return user?.user_id ?? 0;
}

const get = (place: Place, issueId: number) => world.ask(issues.getIssue, { caller: place.operator, issueId });
const list = async (place: Place, filter: issues.IssueFilter = {}) =>
  (await world.ask(issues.listIssues, { caller: place.operator, limit: 100, ...filter })).issues;
const close = (place: Place, issueId: number, reason = "The provider has corrected it") =>
  world.ask(issues.closeIssue, { caller: place.operator, issueId, reason });
const undo = (place: Place, issueId: number) => world.ask(issues.undoIssueClosing, { caller: place.operator, issueId });
const colleagueOf = (place: Place): Place => ({ ...place, operator: { ...place.operator, userId: 424_242 } });

describe("the overview", () => {
  test("counts the undecided issues by view, and sums the filtered ones by currency", async () => {
    const place = await world.openPlace();
    await raiseOf(place, ["a", "bb"]);
    const [missing, old] = await raiseOf(place, ["ccc", "dddd"], { kind: "missing_in_statement" });
    if (missing === undefined || old === undefined) throw new Error("There are no issues.");
    const assigneeId = await addOperator(place);
    await world.ask(issues.assignIssue, { caller: place.operator, issueId: missing.issueId, assigneeId });
    await world.database`
      update issues set opened_at = now() - interval '8 days', amount_minor = 7, currency = 'USD'
      where issue_id = ${old.issueId}`;
    const counted = (filter: issues.IssueFilter = {}) =>
      world.ask(overview.getIssueOverview, { caller: place.operator, ...filter });
    const views = { all_open: 4, needs_attention: 3, waiting: 1, missing: 2, stale: 1 };
    expect(await counted()).toEqual({
      views,
      sums: [
        { currency: "EUR", count: 3, amountMinor: "-600" },
        { currency: "USD", count: 1, amountMinor: "7" },
      ],
    });
    await close(place, old.issueId);
    expect(await counted({ isUnresolved: true, kind: "fee_mismatch" })).toEqual({
      views: { all_open: 3, needs_attention: 2, waiting: 1, missing: 1, stale: 0 },
      sums: [{ currency: "EUR", count: 2, amountMinor: "-300" }],
    });
    expect((await counted({ status: "closed" })).sums).toEqual([{ currency: "USD", count: 1, amountMinor: "7" }]);
  });

  test("lists only the active operators of the organization, by name", async () => {
    const place = await world.openPlace();
    const userId = await addOperator(place);
    await addOperator(place, "suspended");
    await addOperator(place, "active", "cashier");
    await addOperator(await world.openPlace());
    const { operators } = await world.ask(overview.listOperators, { caller: place.operator });
    expect(operators).toContainEqual({ userId, name: "Rita" });
    expect(operators.filter(({ name }) => name === "Rita")).toHaveLength(1);
  });
});

describe("assigning", () => {
  test("names the assignee, once in the audit log, and can be changed to any person", async () => {
    const { place, issueId } = await openOne();
    const assigneeId = await addOperator(place);
    const assign = (to: number | null) =>
      world.ask(issues.assignIssue, { caller: place.operator, issueId, assigneeId: to });
    for (const _ of [1, 2]) expect((await assign(assigneeId)).issue).toMatchObject({ status: "assigned", assigneeId });
    expect(await list(place, { assigneeId })).toHaveLength(1);
    expect((await assign(null)).issue).toMatchObject({ status: "open", assigneeId: null });
    const { steps } = await get(place, issueId);
    expect(steps.map(({ action, data }) => [action, data["prior"]])).toEqual([
      ["issue_assigned", { status: "open", assignee_id: null }],
      ["issue_unassigned", { status: "assigned", assignee_id: assigneeId }],
    ]);
  });

  test("to a suspended person, a cashier or a person of another organization: refused", async () => {
    const { place, issueId } = await openOne();
    const elsewhere = await world.openPlace();
    const strangers = [
      await addOperator(place, "suspended"),
      await addOperator(place, "active", "cashier"),
      await addOperator(elsewhere),
    ];
    for (const assigneeId of strangers) {
      const asked = world.ask(issues.assignIssue, { caller: place.operator, issueId, assigneeId });
      expect((await refusalOf(asked)).code).toBe("not_found");
    }
  });
});

describe("comments", () => {
  test("stay with the issue in their order, also when it is closed", async () => {
    const { place, issueId } = await openOne();
    const write = (text: string) => world.ask(issues.commentIssue, { caller: place.operator, issueId, text });
    await write("The bank investigates.");
    await close(place, issueId);
    await write("It has\nfound it.");
    const { comments } = await get(place, issueId);
    expect(comments.map(({ text, authorName }) => [authorName, text])).toEqual([
      ["Rosa", "The bank investigates."],
      ["Rosa", "It has\nfound it."],
    ]);
    expect((await refusalOf(write("  "))).code).toBe("invalid_request");
  });

  test("another organization's issue: not found", async () => {
    const { issueId } = await openOne();
    const elsewhere = await world.openPlace();
    expect((await refusalOf(get(elsewhere, issueId))).code).toBe("not_found");
  });
});

describe("undoing a closing", () => {
  test("by the same person: the issue is open as before, and the audit log has both steps", async () => {
    const { place, issueId } = await openOne();
    const assigneeId = await addOperator(place);
    await world.ask(issues.assignIssue, { caller: place.operator, issueId, assigneeId });
    await close(place, issueId);
    for (const _ of [1, 2])
      expect((await undo(place, issueId)).issue).toMatchObject({ status: "assigned", assigneeId, reason: null });
    const { steps } = await get(place, issueId);
    expect(steps.map(({ action }) => action)).toEqual(["issue_assigned", "issue_closed", "issue_closing_undone"]);
    expect(steps.at(-1)?.data["prior"]).toMatchObject({ status: "closed", reason: "The provider has corrected it" });
  });

  test("by another person, too late, or after a newer issue: refused, each with its reason", async () => {
    const { place, issueId } = await openOne();
    await close(place, issueId);
    expect(await refusalOf(undo(colleagueOf(place), issueId))).toMatchObject({ reason: "closed_by_another" });
    const late = ISSUE_LIMITS.undoMs + 60_000;
    await world.database`
      update issues set resolved_at = now() - ${late}::float8 * interval '1 ms' where issue_id = ${issueId}`;
    expect(await refusalOf(undo(place, issueId))).toMatchObject({ reason: "undo_too_late" });
    const second = await openOne();
    await close(second.place, second.issueId);
    await world.database`update issues set evidence_hash = sha256('other') where issue_id = ${second.issueId}`;
    const [news] = await raiseOf(second.place, ["line"]);
    expect(news).toMatchObject({ outcome: "superseded", supersedesId: second.issueId });
    expect(await refusalOf(undo(second.place, second.issueId))).toMatchObject({ reason: "issue_superseded" });
  });

  test("a provider payment: its station is notified that money may have moved, and the payment can settle an order", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { amount: "9.00" });
    const issue = await scenes.onlyIssueOf(scene.place);
    await close(scene.place, issue.issueId, "paid back");
    await undo(scene.place, issue.issueId);
    await waitFor("the second notice", () => noticesOf(scene) === 2);
    const order = await world.openIntent(scene.place, 900);
    expect((await scenes.attribute(scene.place, issue, order)).issue.status).toBe("attributed");
  });
});

describe("evidence that changes before a decision", () => {
  /** Makes the request while a run has the issue locked. The run finds another amount, and commits while the request waits. */
  async function changeDuring<T>(issueId: number, ask: () => Promise<T>): Promise<T> {
    let asked: Promise<T> | undefined;
    await world.database.begin(async (tx) => {
      await tx`update issues set amount_minor = 50000, evidence_hash = sha256('other') where issue_id = ${issueId}`;
      asked = ask();
      asked.catch(() => undefined);
      await waitFor("the request at the issue's lock", async () => {
        const waiting = await tx`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return waiting.count > 0;
      });
    });
    return await (asked as Promise<T>);
  }

  test("a closing that names other evidence than the issue has: refused, and the issue stays open", async () => {
    const { place, issueId } = await openOne();
    const { issue } = await get(place, issueId);
    const closeSeen = (evidenceHash: string) =>
      world.ask(issues.closeIssue, { caller: place.operator, issueId, reason: "Checked", evidenceHash });
    const refusal = await refusalOf(closeSeen("0".repeat(64)));
    expect(refusal).toMatchObject({ code: "conflict", reason: "evidence_changed" });
    expect(refusal.detail).toContain("check it again");
    expect((await closeSeen(issue.evidenceHash)).issue.status).toBe("closed");
    // The repetition after a lost answer is accepted.
    expect((await closeSeen("0".repeat(64))).issue.status).toBe("closed");
  });

  test("a closing that waits for a run: refused when the run has changed the issue", async () => {
    const { place, issueId } = await openOne();
    expect(await refusalOf(changeDuring(issueId, () => close(place, issueId)))).toMatchObject({
      reason: "evidence_changed",
    });
    expect((await get(place, issueId)).issue).toMatchObject({ status: "open", amountMinor: "50000" });
  });

  test("a bulk closing that waits for a run: names the issue that has changed, and closes the others", async () => {
    const place = await world.openPlace();
    const [first] = await raiseOf(place, ["a", "bb", "ccc"]);
    const issueId = first?.issueId ?? 0;
    const all = { caller: place.operator, filter: { kind: "fee_mismatch" } as const, reason: "Checked" };
    const answer = await changeDuring(issueId, () => world.ask(issues.closeIssues, all));
    expect(answer.refused).toEqual([{ issueId, reason: "evidence_changed" }]);
    expect(answer).toMatchObject({ closedIds: { length: 2 }, hasMore: false });
    expect((await get(place, issueId)).issue).toMatchObject({ status: "open", amountMinor: "50000" });
  });
});

const noticesOf = (scene: Scene): number =>
  scenes.commandTypes(scene.intent).filter((type) => type === "provider_money_differs").length;

describe("closing by a filter", () => {
  test("closes the matching issues, leaves the rest and later ones, and names those that cannot be closed", async () => {
    const scene = await scenes.open();
    const { place } = scene;
    const raised = (await raiseOf(place, ["a", "bb", "ccc"])).map(({ issueId }) => issueId);
    await raiseOf(place, ["d"], { kind: "rounding" });
    // A payment that its cashier may still settle.
    world.stations.answer(scene.intent.intentId, "provider_confirm", "silence");
    await scenes.pay(scene, { amount: "12.51" });
    await scenes.pay(scene);
    const [waiting] = await list(place, { kind: "amount_over" });
    const newest = Math.max(...(await list(place)).map(({ issueId }) => issueId));
    await raiseOf(place, ["later"]);
    const ask = (filter: issues.IssueFilter) =>
      world.ask(issues.closeIssues, {
        caller: place.operator,
        filter,
        throughId: newest,
        reason: "Checked in the export",
      });
    expect(await ask({ kind: "fee_mismatch", currency: "EUR", leastMinor: "200" })).toEqual({
      closedIds: raised.slice(1),
      refused: [],
      hasMore: false,
    });
    expect(await ask({ source: "provider" })).toEqual({
      closedIds: [],
      refused: [{ issueId: waiting?.issueId, reason: "money_may_settle" }],
      hasMore: false,
    });
    expect(await ask({ source: "statement" })).toMatchObject({ closedIds: { length: 2 } });
    const open = await list(place, { isUnresolved: true });
    expect(open.map(({ kind }) => kind).toSorted()).toEqual(["amount_over", "fee_mismatch"]);
    const events = await world.database<{ type: string; issues: number }[]>`
      select payload -> 'event' ->> 'type' as type, jsonb_array_length(payload #> '{event,issues}') as issues from outbox
      where key = ${`organization.${place.organizationId}`} order by outbox_id`;
    expect(events).toEqual([
      { type: "issues_opened", issues: 1 },
      { type: "issues_closed", issues: 2 },
      { type: "issues_closed", issues: 2 },
    ]);
  });
});

describe("a closed callback issue", () => {
  test("a payment that is asserted again with another amount: a new issue names it, and it settles nothing", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN" });
    const issue = await scenes.onlyIssueOf(scene.place);
    await close(scene.place, issue.issueId, "paid back");
    for (const nth of [1, 2]) await scenes.pay(scene, { reference: "UNKNOWN", amount: "13.00", nth });
    const [news, closed, ...others] = await scenes.issuesOf(scene.place);
    expect(others).toEqual([]);
    expect(closed).toMatchObject({ issueId: issue.issueId, status: "closed", supersededBy: news?.issueId });
    expect(news).toMatchObject({
      kind: "unmatched_money",
      status: "open",
      amountMinor: "1300",
      supersedesId: issue.issueId,
    });
    const order = await world.openIntent(scene.place, 1300);
    if (news === undefined) throw new Error("There is no new issue.");
    expect(await refusalOf(scenes.attribute(scene.place, news, order))).toMatchObject({ reason: "money_closed" });
  });
});

const ISSUES = 40;

async function raiseMany(place: Place): Promise<readonly number[]> {
  const subjects = Array.from({ length: ISSUES }, (_, nth) => `line:${nth}`);
  return (await raiseOf(place, subjects, { kind: "rounding" })).map(({ issueId }) => issueId);
}

const closings = async (issueId: number, place: Place): Promise<number> => {
  const { steps } = await world.ask(issues.getIssue, { caller: place.operator, issueId });
  return steps.filter(({ action }) => action === "issue_closed").length;
};

describe("two operators at once", () => {
  test("two closings of one issue: one is refused, and the reason of the other stays", async () => {
    const place = await world.openPlace();
    const [issueId = 0] = await raiseMany(place);

    const [first, second] = await Promise.allSettled([
      close(place, issueId, "Rounded."),
      close(colleagueOf(place), issueId, "Known."),
    ]);

    const closed = [first, second].flatMap((outcome) => (outcome?.status === "fulfilled" ? outcome.value.issue : []));
    expect(closed).toHaveLength(1);
    const { issue } = await world.ask(issues.getIssue, { caller: place.operator, issueId });
    expect(issue).toMatchObject({ status: "closed", reason: closed[0]?.reason, resolvedBy: closed[0]?.resolvedBy });
    const late = closed[0]?.resolvedBy === 424_242 ? place : colleagueOf(place);
    expect((await refusalOf(close(late, issueId, "Too late."))).reason).toBe("issue_closed");
    expect(await closings(issueId, place)).toBe(1);
  });

  test("two bulk closings of one filter: each issue is closed once", async () => {
    const place = await world.openPlace();
    const issueIds = await raiseMany(place);
    const closeAll = ({ operator }: Place) =>
      world.ask(issues.closeIssues, { caller: operator, filter: { kind: "rounding" }, reason: "Rounding." });

    const outcomes = await Promise.all([closeAll(place), closeAll(colleagueOf(place))]);

    const closedIds = outcomes.flatMap((outcome) => outcome.closedIds);
    expect(closedIds).toHaveLength(ISSUES);
    expect(new Set(closedIds)).toEqual(new Set(issueIds));
    const counts = await Promise.all(issueIds.slice(0, 5).map((issueId) => closings(issueId, place)));
    expect(counts).toEqual([1, 1, 1, 1, 1]);
  });

  test("a closing and an assignment: the issue is closed, or its assignment is refused", async () => {
    const place = await world.openPlace();
    const [issueId = 0] = await raiseMany(place);
    const assign = world.ask(issues.assignIssue, { caller: place.operator, issueId, assigneeId: null });
    await Promise.allSettled([assign, close(colleagueOf(place), issueId, "Rounding.")]);
    const { issue } = await world.ask(issues.getIssue, { caller: place.operator, issueId });
    expect(issue.status).toBe("closed");
  });
});
