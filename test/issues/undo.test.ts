/** Undoing the closings of several issues: each is like a single undo, whatever happens to the others. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BOUNDS } from "../../services/bus/bounds.ts";
import * as attributionProposals from "../../services/bus/messages/attribution-proposals.ts";
import * as issues from "../../services/bus/messages/issues.ts";
import { ISSUE_LIMITS } from "../../services/issues/limits.ts";
import { raiseIssues } from "../../services/issues/sql/raise.ts";
import { Scenes } from "../providers/emvco-scene.ts";
import { type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "../providers/providers-world.ts";
import { waitFor } from "../support/wait-for.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

/** Raises issues as a run does, without a payment of a provider config. */
async function raise({ organizationId, stationId }: Place, count: number): Promise<readonly number[]> {
  const raised = await world.database.begin((tx) =>
    raiseIssues(
      tx,
      tx`
        select ${organizationId}::bigint, ${`statement:${organizationId}`}::text, ${stationId}::bigint, 'rounding'::text,
          'line:' || nth, 'paid', 'fee', 1::bigint, 'EUR', 'statement', null::bigint, 1::bigint, null::bigint,
          null::bigint, '', '{}'::jsonb, false, null::text, null::bigint
        from generate_series(1, ${count}::int) as nth`,
    ),
  );
  return raised.map(({ issueId }) => issueId).toSorted((one, other) => one - other);
}

/** Makes payments whose reference is unknown. Each becomes an issue about a provider payment. */
async function raiseMoney(count: number): Promise<{ readonly place: Place; readonly issueIds: readonly number[] }> {
  const scene = await scenes.open();
  for (let nth = 1; nth <= count; nth += 1)
    await scenes.pay(scene, { reference: "UNKNOWN", transaction_id: `U-${scene.intent.intentId}-${nth}` });
  const found = await waitFor("the issues", async () => {
    const all = await scenes.issuesOf(scene.place);
    return all.length === count && all;
  });
  return { place: scene.place, issueIds: found.map(({ issueId }) => issueId).toReversed() };
}

const get = (place: Place, issueId: number) => world.ask(issues.getIssue, { caller: place.operator, issueId });
const closeAll = async (place: Place) =>
  (await world.ask(issues.closeIssues, { caller: place.operator, filter: {}, reason: "Checked in the export" }))
    .closedIds;
const undoAll = (place: Place, issueIds: readonly number[]) =>
  world.ask(issues.undoIssueClosings, { caller: place.operator, issueIds: [...issueIds] });
const colleagueOf = (place: Place): Place => ({ ...place, operator: { ...place.operator, userId: 424_242 } });
/** How often an issue was closed, and how often that was undone. */
async function stepsOf(place: Place, issueId: number): Promise<readonly [number, number]> {
  const { steps } = await get(place, issueId);
  const count = (wanted: string) => steps.filter(({ action }) => action === wanted).length;
  return [count("issue_closed"), count("issue_closing_undone")];
}

describe("another transaction keeps the lock of an issue", () => {
  test("a decision is refused as busy, and of many decisions only that one", async () => {
    const { place, issueIds } = await raiseMoney(2);
    const { operator: caller } = place;
    const [kept = 0] = issueIds;
    const busy = { code: "busy", retryAfterMs: ISSUE_LIMITS.lockedRetryMs };
    const closing = { caller, issueId: kept, reason: "Checked in the export" };
    const whileKept = (work: () => Promise<void>): Promise<unknown> =>
      world.database.begin(async (tx) => {
        await tx`select from issues where issue_id = ${kept} for update`;
        await work();
      });
    const paying = { caller, issueId: kept, orderId: 1, reason: "The guest showed the receipt." };
    await whileKept(async () => {
      const refused = await Promise.all(
        [
          world.ask(issues.closeIssue, closing),
          world.ask(issues.attributeIssue, paying),
          world.ask(attributionProposals.proposeAttribution, paying),
          world.ask(attributionProposals.rejectAttribution, {
            caller,
            issueId: kept,
            proposalId: 1,
            reason: "No receipt",
          }),
          world.ask(issues.commentIssue, { caller, issueId: kept, text: "Asked the guest" }),
        ].map(refusalOf),
      );
      expect(refused).toMatchObject(refused.map(() => busy));
      const all = await world.ask(issues.closeIssues, { caller, filter: {}, reason: "Checked in the export" });
      expect(all.refused).toEqual([{ issueId: kept, reason: "busy" }]);
    });
    await world.ask(issues.closeIssue, closing);
    await whileKept(async () => {
      expect(await refusalOf(world.ask(issues.undoIssueClosing, { caller, issueId: kept }))).toMatchObject(busy);
      expect((await undoAll(place, [kept])).refused).toEqual([{ issueId: kept, reason: "busy" }]);
    });
    expect(await undoAll(place, [kept])).toMatchObject({ reopened: 1, refused: [] });
  });
});

describe("undoing a closing of many issues", () => {
  test("all issues are open as before, and the audit log and the bus have an event of each", async () => {
    const place = await world.openPlace();
    const issueIds = await raise(place, 3);
    const [user] = await world.database<[{ user_id: number }]>`
      insert into users (organization_id, email, name, role, password_hash)
      values (${place.organizationId}, 'sara@undo.example', 'Sara', 'reconciliation_operator', 'x') returning user_id`;
    const [first = 0] = issueIds;
    await world.ask(issues.assignIssue, { caller: place.operator, issueId: first, assigneeId: user.user_id });
    expect(await closeAll(place)).toEqual(issueIds);

    expect(await undoAll(place, issueIds)).toEqual({ reopened: 3, refused: [], remainingIds: [] });

    const { issue, steps } = await get(place, first);
    expect(issue).toMatchObject({ status: "assigned", assigneeId: user.user_id, reason: null, resolvedBy: null });
    const prior = { status: "closed", assignee_id: user.user_id, reason: "Checked in the export" };
    expect(steps.at(-1)).toMatchObject({ action: "issue_closing_undone", data: { kind: "rounding", prior } });
    for (const issueId of issueIds.slice(1)) expect((await get(place, issueId)).issue.status).toBe("open");
    const events = await world.database<{ type: string; issues: number }[]>`
      select payload -> 'event' ->> 'type' as type, jsonb_array_length(payload #> '{event,issues}') as issues from outbox
      where key = ${`organization.${place.organizationId}`} order by outbox_id`;
    expect(events.slice(-2)).toEqual([
      { type: "issues_closed", issues: 3 },
      { type: "issues_opened", issues: 3 },
    ]);
  });

  test("payments: each issue is open again, its station is notified, and its money can pay an order", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { amount: "9.00" });
    const { issueId } = await scenes.onlyIssueOf(scene.place);
    await world.ask(issues.closeIssue, { caller: scene.place.operator, issueId, reason: "paid back" });
    expect(await undoAll(scene.place, [issueId])).toEqual({ reopened: 1, refused: [], remainingIds: [] });
    const notices = () => scenes.commandTypes(scene.intent).filter((type) => type === "provider_money_differs");
    await waitFor("the second notice", () => notices().length === 2);
    const { issue } = await get(scene.place, issueId);
    const order = await world.openIntent(scene.place, 900);
    expect((await scenes.attribute(scene.place, issue, order)).issue.status).toBe("attributed");
  });

  test("closings that cannot be undone: named with their reasons, and all other issues are open again", async () => {
    const place = await world.openPlace();
    const [mine = 0, late = 0, superseded = 0, ended = 0, theirs = 0] = await raise(place, 5);
    const caller = colleagueOf(place).operator;
    await world.ask(issues.closeIssue, { caller, issueId: theirs, reason: "Known." });
    await closeAll(place);
    const tooLateMs = ISSUE_LIMITS.undoMs + 60_000;
    await world.database`
      update issues set resolved_at = now() - ${tooLateMs}::float8 * interval '1 ms' where issue_id = ${late}`;
    await world.database`update issues set superseded_by = ${mine} where issue_id = ${superseded}`;
    await world.database`update issues set status = 'ended' where issue_id = ${ended}`;
    const [elsewhere = 0] = await raise(await world.openPlace(), 1);

    const answer = await undoAll(place, [late, superseded, ended, theirs, elsewhere, mine, mine]);

    expect(answer).toMatchObject({ reopened: 1, remainingIds: [] });
    expect(answer.refused.toSorted((one, other) => one.issueId - other.issueId)).toEqual([
      { issueId: late, reason: "undo_too_late" },
      { issueId: superseded, reason: "issue_superseded" },
      { issueId: ended, reason: "issue_ended" },
      { issueId: theirs, reason: "closed_by_another" },
      { issueId: elsewhere, reason: "not_found" },
    ]);
    expect((await get(place, mine)).issue.status).toBe("open");
    for (const issueId of [late, superseded, theirs]) expect((await get(place, issueId)).issue.status).toBe("closed");
  });

  test("a caller without the permission, no issue, or too many of them: refused", async () => {
    const place = await world.openPlace();
    const asked = world.ask(issues.undoIssueClosings, { caller: place.cashier, issueIds: [1] });
    expect((await refusalOf(asked)).code).toBe("permission_denied");
    expect((await refusalOf(undoAll(place, []))).code).toBe("invalid_request");
    const many = Array.from({ length: BOUNDS.issuesClosedAtOnce + 1 }, (_, nth) => nth + 1);
    expect((await refusalOf(undoAll(place, many))).code).toBe("invalid_request");
  });

  test("payments for which the request has no time: named, and a further request reopens them", async () => {
    const { place, issueIds } = await raiseMoney(3);
    await closeAll(place);
    const [first = 0, second = 0, third = 0] = issueIds;
    // Other transactions lock the first two issues for longer than a request takes, and each for less than the lock timeout.
    const hold = async (issueId: number): Promise<() => Promise<unknown>> => {
      const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const transaction = world.database.begin(async (tx) => {
        await tx`select from issues where issue_id = ${issueId} for update`;
        locked.resolve();
        await released.promise;
      });
      await locked.promise;
      return () => {
        released.resolve();
        return transaction;
      };
    };
    const [releaseFirst, releaseSecond] = await Promise.all([hold(first), hold(second)]);
    const asked = undoAll(place, issueIds);
    await delay(ISSUE_LIMITS.closingMs * 0.6);
    await releaseFirst();
    await delay(ISSUE_LIMITS.closingMs * 0.7);
    await releaseSecond();
    const answer = await asked;
    expect(answer).toEqual({ reopened: 2, refused: [], remainingIds: [third] });
    expect(await undoAll(place, answer.remainingIds)).toEqual({ reopened: 1, refused: [], remainingIds: [] });
  });
});

describe("several requests at once", () => {
  test("the same undo, at once and again: the answers are equal, and each issue is reopened once", async () => {
    const place = await world.openPlace();
    const issueIds = await raise(place, 40);
    await closeAll(place);
    const answers = await Promise.all([1, 2].map(() => undoAll(place, issueIds)));
    answers.push(await undoAll(place, issueIds));
    for (const answer of answers) expect(answer).toEqual({ reopened: 40, refused: [], remainingIds: [] });
    for (const issueId of issueIds.slice(0, 5)) expect(await stepsOf(place, issueId)).toEqual([1, 1]);
  });

  test("the same undo of payments, at once: each issue is reopened once", async () => {
    const { place, issueIds } = await raiseMoney(4);
    await closeAll(place);
    for (const answer of await Promise.all([1, 2].map(() => undoAll(place, issueIds.toReversed()))))
      expect(answer).toEqual({ reopened: 4, refused: [], remainingIds: [] });
    for (const issueId of issueIds) expect(await stepsOf(place, issueId)).toEqual([1, 1]);
  });

  test("an undo, and a colleague who closes all: each issue is as the later of the two has left it", async () => {
    const place = await world.openPlace();
    const issueIds = await raise(place, 40);
    await closeAll(place);
    const [undone, theirs] = await Promise.all([undoAll(place, issueIds), closeAll(colleagueOf(place))]);
    expect(undone).toMatchObject({ reopened: 40, refused: [] });
    for (const issueId of issueIds) {
      const isTheirs = theirs.includes(issueId);
      expect((await get(place, issueId)).issue.status).toBe(isTheirs ? "closed" : "open");
      expect(await stepsOf(place, issueId)).toEqual([isTheirs ? 2 : 1, 1]);
    }
    // What the colleague has closed since stays closed.
    await closeAll(colleagueOf(place));
    const again = await undoAll(place, issueIds);
    expect(again.refused).toEqual(issueIds.map((issueId) => ({ issueId, reason: "closed_by_another" })));
  });
});
