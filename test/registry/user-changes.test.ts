/** Changes of people at the same moment: an organization keeps an owner, and a former role grants nothing. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Caller } from "../../services/bus/messages/caller.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import * as users from "../../services/bus/messages/users.ts";
import { addOrganization, callerOf, type RegistryFixture, refusalOf, startRegistry } from "./registry-fixture.ts";

const PASSWORD = "the first password";

let fixture: RegistryFixture;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

let organizations = 0;
/** An organization with two owners. */
async function twoOwners(): Promise<readonly [Caller, Caller]> {
  const first = await addOrganization(fixture.sql, `Changes ${(organizations += 1)}`);
  const email = `second-${organizations}@changes.example`;
  const request = { caller: first, email, name: "Second", role: "owner" as const, password: PASSWORD };
  await fixture.ask(users.createUser, request);
  return [first, await callerOf(fixture.sql, email)];
}
const change = (caller: Caller, userId: number, more: object) =>
  fixture.ask(users.changeUser, { caller, userId, ...more });
const activeOwners = async ({ organizationId }: Caller): Promise<number> => {
  const rows = await fixture.sql`
    select from users where organization_id = ${organizationId} and role = 'owner' and status = 'active'`;
  return rows.length;
};

describe("an organization keeps an owner", () => {
  test("two owners who leave the role at once: one stays", async () => {
    for (let round = 0; round < 5; round += 1) {
      const [first, second] = await twoOwners();
      const tried = await Promise.allSettled(
        [first, second].map((owner) => change(owner, owner.userId, { role: "cashier" })),
      );
      expect(tried.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      expect(await activeOwners(first)).toBe(1);
    }
  });

  test("an owner who leaves the role while suspending the other: one of the two is refused", async () => {
    for (let round = 0; round < 5; round += 1) {
      const [first, second] = await twoOwners();
      await Promise.allSettled([
        change(first, first.userId, { role: "cashier" }),
        fixture.ask(users.moveUser, { caller: first, userId: second.userId, move: "SUSPEND" }),
      ]);
      expect(await activeOwners(first)).toBe(1);
    }
  });

  test("a second owner who is suspended does not count", async () => {
    const [first, second] = await twoOwners();
    await fixture.ask(users.moveUser, { caller: first, userId: second.userId, move: "SUSPEND" });
    expect(await refusalOf(change(first, first.userId, { role: "cashier" }))).toMatchObject({ code: "conflict" });
  });

  test("a former owner: changes, suspends and resets no account, whatever the session contains", async () => {
    const [first, second] = await twoOwners();
    await change(first, second.userId, { role: "cashier" });
    const { userId } = first;
    const password = "quite another password";
    const refusals = await Promise.all(
      [
        change(second, userId, { name: "Hijacked" }),
        fixture.ask(users.moveUser, { caller: second, userId, move: "SUSPEND" }),
        fixture.ask(users.resetUserPassword, { caller: second, userId, password }),
      ].map(refusalOf),
    );
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: "permission_denied" });
  });
});

describe("a change of a person", () => {
  test("another organization's person, and without the permission: refused", async () => {
    const [first] = await twoOwners();
    expect(await refusalOf(change(first, fixture.cashier.userId, { name: "Theirs" }))).toEqual({ code: "not_found" });
    expect(await refusalOf(change(fixture.cashier, fixture.cashier.userId, { role: "owner" }))).toEqual({
      code: "permission_denied",
    });
  });

  test("two people who take one address at once: one gets it", async () => {
    const [first, second] = await twoOwners();
    const email = `taken-${organizations}@changes.example`;
    const tried = await Promise.allSettled([first, second].map(({ userId }) => change(first, userId, { email })));
    expect(tried.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  test("a log-in that was checked before a change of role: refused after it", async () => {
    const [first, second] = await twoOwners();
    const { email } = (await change(first, second.userId, {})).user;
    const details = { email, password: PASSWORD, address: "203.0.113.9", permission: "organization.manage" as const };
    let attempt: Promise<unknown> = Promise.resolve();
    await fixture.sql.begin(async (tx) => {
      await tx`update users set role = 'cashier' where user_id = ${second.userId}`;
      attempt = refusalOf(fixture.ask(sessions.logIn, details));
      // Its password is checked already; it waits for the person's row.
      const waits = async () =>
        (
          await fixture.sql`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
        ).length > 0;
      await vi.waitUntil(waits, { timeout: 10_000, interval: 10 });
    });
    expect(await attempt).toMatchObject({ code: "permission_denied" });
    expect(await fixture.sql`select from sessions where user_id = ${second.userId}`).toHaveLength(0);
  });
});
