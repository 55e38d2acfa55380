/**
 * A stalled process carries out a request late: another process has answered it long ago. What people have decided since
 * then stays.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { z } from "zod";
import * as limitMessages from "../../services/bus/messages/attribution-limits.ts";
import * as issues from "../../services/bus/messages/issues.ts";
import type { Operation, SentRequestOf } from "../../services/bus/operation.ts";
import { raiseIssues } from "../../services/issues/sql/raise.ts";
import { type Place, type ProvidersWorld, startProvidersWorld } from "../providers/providers-world.ts";
import { carryOut as carryOutOnce } from "../support/carry-out-twice.ts";

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

async function raise({ organizationId, stationId }: Place): Promise<number> {
  const raised = await world.database.begin((tx) =>
    raiseIssues(
      tx,
      tx`
        select ${organizationId}::bigint, ${`statement:${organizationId}`}::text, ${stationId}::bigint, 'rounding'::text,
          'line:1', 'paid', 'payment', 1::bigint, 'EUR', 'statement', null::bigint, 1::bigint, null::bigint,
          null::bigint, '', '{}'::jsonb, false, null::text, null::bigint`,
    ),
  );
  return raised[0]?.issueId ?? 0;
}

const carryOut = <TOperation extends Operation<z.ZodType, z.ZodType>>(
  operation: TOperation,
  request: SentRequestOf<TOperation>,
) => carryOutOnce(world.bus.nc, operation, request);

const statusOf = async ({ operator }: Place, issueId: number): Promise<string> =>
  (await world.ask(issues.getIssue, { caller: operator, issueId })).issue.status;

describe("a late execution", () => {
  test("a limit: the newer limit stays", async () => {
    const { owner: caller } = await world.openPlace();
    const limit = { caller, currency: "EUR", reason: "As agreed." };
    const again = await carryOut(limitMessages.setAttributionLimit, { ...limit, aloneUpToMinor: "100000" });
    await world.ask(limitMessages.setAttributionLimit, { ...limit, aloneUpToMinor: "0" });
    await again();
    const { limits } = await world.ask(limitMessages.listAttributionLimits, { caller });
    expect(limits.find(({ currency }) => currency === "EUR")?.aloneUpToMinor).toBe("0");
  });

  test("an assignment: the newer assignment stays", async () => {
    const place = await world.openPlace();
    const { operator: caller } = place;
    const issueId = await raise(place);
    const [assignee] = await world.database<[{ user_id: number }]>`
      insert into users (organization_id, email, name, role, password_hash)
      values (${caller.organizationId}, 'sara@late.example', 'Sara', 'reconciliation_operator', 'x') returning user_id`;
    const assigneeId = assignee.user_id;
    const again = await carryOut(issues.assignIssue, { caller, issueId, assigneeId });
    await world.ask(issues.assignIssue, { caller, issueId, assigneeId: null });
    await again();
    const { issue } = await world.ask(issues.getIssue, { caller, issueId });
    expect(issue.assigneeId).toBeNull();
  });

  test("a closing that was undone: the issue stays open", async () => {
    const place = await world.openPlace();
    const { operator: caller } = place;
    const issueId = await raise(place);
    const again = await carryOut(issues.closeIssue, { caller, issueId, reason: "Rounding." });
    await world.ask(issues.undoIssueClosing, { caller, issueId });
    await again();
    expect(await statusOf(place, issueId)).toBe("open");
  });

  test("an undo of one or of many, after the issue was closed again: it stays closed", async () => {
    const place = await world.openPlace();
    const { operator: caller } = place;
    const issueId = await raise(place);
    for (const undo of [
      () => carryOut(issues.undoIssueClosing, { caller, issueId }),
      () => carryOut(issues.undoIssueClosings, { caller, issueIds: [issueId] }),
    ]) {
      await world.ask(issues.closeIssue, { caller, issueId, reason: "Rounding." });
      const again = await undo();
      expect(await statusOf(place, issueId)).toBe("open");
      await world.ask(issues.closeIssue, { caller, issueId, reason: "Rounding after all." });
      await again();
      expect(await statusOf(place, issueId)).toBe("closed");
      await world.ask(issues.undoIssueClosing, { caller, issueId });
    }
  });
});
