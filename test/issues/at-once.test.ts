/** Two operators who decide the same issues at once: one of them decides each, and the other is refused. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as issues from "../../services/bus/messages/issues.ts";
import { raiseIssues } from "../../services/issues/sql/raise.ts";
import { type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "../providers/providers-world.ts";

const ISSUES = 40;

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

async function raiseMany(place: Place): Promise<readonly number[]> {
  const { organizationId, stationId } = place;
  const raised = await world.database.begin((tx) =>
    raiseIssues(
      tx,
      tx`
        select ${organizationId}::bigint, ${`statement:${organizationId}`}::text, ${stationId}::bigint, 'rounding'::text,
          'line:' || n, 'paid', 'payment', n::bigint, 'EUR', 'statement', null::bigint, 1::bigint, null::bigint,
          null::bigint, '', '{}'::jsonb, false, null::text, null::bigint
        from generate_series(1, ${ISSUES}::int) as n`,
    ),
  );
  return raised.map(({ issueId }) => issueId);
}

const colleagueOf = (place: Place): Place => ({ ...place, operator: { ...place.operator, userId: 424_242 } });
const closings = async (issueId: number, place: Place): Promise<number> => {
  const { steps } = await world.ask(issues.getIssue, { caller: place.operator, issueId });
  return steps.filter(({ action }) => action === "issue_closed").length;
};

describe("two operators at once", () => {
  test("two closings of one issue: one is refused, and the reason of the other stays", async () => {
    const place = await world.openPlace();
    const [issueId = 0] = await raiseMany(place);
    const close = ({ operator }: Place, reason: string) =>
      world.ask(issues.closeIssue, { caller: operator, issueId, reason });

    const [first, second] = await Promise.allSettled([close(place, "Rounded."), close(colleagueOf(place), "Known.")]);

    const closed = [first, second].flatMap((outcome) => (outcome?.status === "fulfilled" ? outcome.value.issue : []));
    expect(closed).toHaveLength(1);
    const { issue } = await world.ask(issues.getIssue, { caller: place.operator, issueId });
    expect(issue).toMatchObject({ status: "closed", reason: closed[0]?.reason, resolvedBy: closed[0]?.resolvedBy });
    const late = closed[0]?.resolvedBy === 424_242 ? place : colleagueOf(place);
    expect((await refusalOf(close(late, "Too late."))).reason).toBe("issue_closed");
    expect(await closings(issueId, place)).toBe(1);
  });

  test("two bulk closings of one filter: each issue is closed once", async () => {
    const place = await world.openPlace();
    const issueIds = await raiseMany(place);
    const closeAll = ({ operator }: Place) =>
      world.ask(issues.closeIssues, { caller: operator, filter: { kind: "rounding" }, reason: "Rounding." });

    const outcomes = await Promise.all([closeAll(place), closeAll(colleagueOf(place))]);

    expect(outcomes.reduce((sum, { closed }) => sum + closed, 0)).toBe(ISSUES);
    const counts = await Promise.all(issueIds.slice(0, 5).map((issueId) => closings(issueId, place)));
    expect(counts).toEqual([1, 1, 1, 1, 1]);
  });

  test("a closing and an assignment: the issue is closed, or its assignment is refused", async () => {
    const place = await world.openPlace();
    const [issueId = 0] = await raiseMany(place);
    const assign = world.ask(issues.assignIssue, { caller: place.operator, issueId, assigneeId: null });
    const close = world.ask(issues.closeIssue, { caller: colleagueOf(place).operator, issueId, reason: "Rounding." });
    await Promise.allSettled([assign, close]);
    const { issue } = await world.ask(issues.getIssue, { caller: place.operator, issueId });
    expect(issue.status).toBe("closed");
  });
});
