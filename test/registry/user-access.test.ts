/** Suspensions, new passwords, password changes, an organization's first owner, and concurrent changes of people. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { Caller, Permission } from "../../services/bus/messages/caller.ts";
import { listEvents } from "../../services/bus/messages/events.ts";
import { createFilial } from "../../services/bus/messages/filials.ts";
import { createOrganization } from "../../services/bus/messages/organizations.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import { createStation } from "../../services/bus/messages/stations.ts";
import * as users from "../../services/bus/messages/users.ts";
import { LOGIN_LIMITS } from "../../services/registry/limits.ts";
import { addOrganization, callerOf, type RegistryFixture, refusalOf, startRegistry } from "./registry-fixture.ts";

const PASSWORD = "the first password";
const NEW = "quite another password";

let fixture: RegistryFixture;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

let people = 0;
let user: Caller;
let email: string;
beforeEach(async () => {
  email = `person-${(people += 1)}@sandbox.example`;
  const request = { caller: fixture.owner, email, name: "Carl", role: "cashier" as const, password: PASSWORD };
  await fixture.ask(users.createUser, request);
  user = await callerOf(fixture.sql, email);
});

let addresses = 0;
/** An address without earlier attempts. */
const newAddress = (): string => `203.0.113.${(addresses += 1)}`;
const logIn = (password: string, permission: Permission = "payments.collect", who = email) =>
  fixture.ask(sessions.logIn, { email: who, password, address: newAddress(), permission });
const move = (which: "SUSPEND" | "RESUME", caller = fixture.owner, userId = user.userId) =>
  fixture.ask(users.moveUser, { caller, userId, move: which });
const reset = (caller = fixture.owner, userId = user.userId, password = NEW) =>
  fixture.ask(users.resetUserPassword, { caller, userId, password });

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
/** Those tokens for whose sessions the registry publishes an end to the gateways. */
async function forgotten(tokens: readonly string[]): Promise<string[]> {
  const rows = await fixture.sql<{ hash: string }[]>`
    select payload ->> 'hash' as hash from outbox where kind = 'session_delete'`;
  const hashes = new Set(rows.map((row) => row.hash));
  return tokens.filter((token) => hashes.has(sha256(token)));
}
const sessionOf = async (token: string): Promise<number> => {
  const [row] = await fixture.sql<{ session_id: number }[]>`
    select session_id from sessions where encode(token_hash, 'hex') = ${sha256(token)}`;
  return row?.session_id ?? 0;
};
/** Waits until a statement waits for a lock: the log-in, after the check of its password. */
const untilOneWaits = () =>
  vi.waitUntil(
    async () => {
      const waiting = await fixture.sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    },
    { timeout: 10_000, interval: 10 },
  );
const auditLog = async () =>
  (
    await fixture.sql<{ action: string; actor_kind: string }[]>`
      select action, actor_kind from registry_events
      where subject_kind = 'user' and subject_id = ${user.userId} order by event_id`
  ).map((row) => `${row.actor_kind} ${row.action}`);

describe("the suspension of a user", () => {
  test("the user loses every session and cannot log in; after the resumption, the same password is valid", async () => {
    const tokens = [(await logIn(PASSWORD)).token, (await logIn(PASSWORD)).token];
    expect((await move("SUSPEND")).user).toMatchObject({ userId: user.userId, status: "suspended" });
    expect(await forgotten(tokens)).toEqual(tokens);
    expect(await refusalOf(logIn(PASSWORD))).toMatchObject({
      code: "permission_denied",
      detail: "The owner has suspended this account.",
    });
    // With a wrong password, the answer does not show the suspension.
    expect(await refusalOf(logIn("wrong"))).toEqual({ code: "login_failed" });
    expect((await move("RESUME")).user.status).toBe("active");
    await logIn(PASSWORD);
    expect(await auditLog()).toEqual(["owner user_created", "owner user_suspended", "owner user_resumed"]);
  });

  test("a user who is already suspended: another suspension changes nothing", async () => {
    await move("SUSPEND");
    expect((await move("SUSPEND")).user.status).toBe("suspended");
    expect(await auditLog()).toEqual(["owner user_created", "owner user_suspended"]);
  });

  test("a log-in whose password was checked before the suspension: refused after it", async () => {
    let attempt: Promise<unknown> = Promise.resolve();
    await fixture.sql.begin(async (tx) => {
      await tx`update users set status = 'suspended' where user_id = ${user.userId}`;
      attempt = refusalOf(logIn(PASSWORD));
      await untilOneWaits();
    });
    expect(await attempt).toMatchObject({ code: "permission_denied" });
    const open = await fixture.sql`select from sessions where user_id = ${user.userId} and ended_at is null`;
    expect(open).toHaveLength(0);
  });
});

describe("a new password that the owner sets", () => {
  test("the user's sessions end, and only the new password is valid", async () => {
    const { token } = await logIn(PASSWORD);
    await reset();
    expect(await forgotten([token])).toEqual([token]);
    expect(await refusalOf(logIn(PASSWORD))).toEqual({ code: "login_failed" });
    await logIn(NEW);
    expect(await auditLog()).toEqual(["owner user_created", "owner user_password_reset"]);
  });
});

describe("a suspension or a new password that is refused", () => {
  test("for a user of another organization, or an unknown one: not found", async () => {
    const stranger = await addOrganization(fixture.sql, `Elsewhere ${people}`);
    for (const [caller, userId] of [
      [stranger, user.userId],
      [fixture.owner, 999_999],
    ] as const) {
      expect(await refusalOf(move("SUSPEND", caller, userId))).toEqual({ code: "not_found" });
      expect(await refusalOf(reset(caller, userId))).toEqual({ code: "not_found" });
    }
    await logIn(PASSWORD);
  });

  test("by a cashier, or by owners for themselves: refused", async () => {
    expect(await refusalOf(move("SUSPEND", fixture.cashier))).toEqual({ code: "permission_denied" });
    expect(await refusalOf(reset(fixture.cashier))).toEqual({ code: "permission_denied" });
    const { userId } = fixture.owner;
    expect((await refusalOf(move("SUSPEND", fixture.owner, userId))).code).toBe("conflict");
    expect((await refusalOf(reset(fixture.owner, userId))).code).toBe("conflict");
  });

  test("two owners who suspend each other at once: one stays active", async () => {
    for (let round = 0; round < 5; round += 1) {
      const first = await addOrganization(fixture.sql, `Two owners ${round}`);
      const details = { caller: first, name: "Second", role: "owner" as const, password: PASSWORD };
      const { user: made } = await fixture.ask(users.createUser, { ...details, email: `two-${round}@o.example` });
      const second = await callerOf(fixture.sql, made.email);
      const tried = await Promise.allSettled([
        move("SUSPEND", first, second.userId),
        move("SUSPEND", second, first.userId),
      ]);
      expect(tried.map((one) => one.status).toSorted()).toEqual(["fulfilled", "rejected"]);
    }
  });
});

describe("a password change by the user", () => {
  const change = (token: string, oldPassword: string, newPassword = NEW, address = newAddress()) =>
    sessionOf(token).then((sessionId) =>
      fixture.ask(sessions.changePassword, { caller: user, sessionId, address, oldPassword, newPassword }),
    );

  test("with the old password: changed; the other sessions end, this one stays", async () => {
    const mine = (await logIn(PASSWORD)).token;
    const others = [(await logIn(PASSWORD)).token, (await logIn(PASSWORD)).token];
    await change(mine, PASSWORD);
    expect(await forgotten([mine, ...others])).toEqual(others);
    expect(await refusalOf(logIn(PASSWORD))).toEqual({ code: "login_failed" });
    await logIn(NEW);
    expect(await auditLog()).toEqual(["owner user_created", "cashier user_password_changed"]);
  });

  test("with a wrong old password: the password stays, and guesses are stopped", async () => {
    const { token } = await logIn(PASSWORD);
    const address = newAddress();
    for (let index = 0; index < LOGIN_LIMITS.perSession.attempts; index += 1) {
      expect(await refusalOf(change(token, `guess ${index}`, NEW, address))).toMatchObject({
        code: "invalid_request",
        errors: [{ pointer: "/old_password" }],
      });
    }
    expect((await refusalOf(change(token, PASSWORD, NEW, address))).code).toBe("login_throttled");
    await logIn(PASSWORD);
    expect(await forgotten([token])).toEqual([]);
  });

  test("two changes at once: one succeeds", async () => {
    const { token } = await logIn(PASSWORD);
    const passwords = ["one new password", "two new password"];
    const tried = await Promise.allSettled(passwords.map((password) => change(token, PASSWORD, password)));
    const winner = tried.findIndex((one) => one.status === "fulfilled");
    expect(tried.map((one) => one.status).toSorted()).toEqual(["fulfilled", "rejected"]);
    await logIn(passwords[winner] as string);
  });
});

describe("the creation of an organization", () => {
  test("its owner: can create a filial and a station, and sees nothing of other organizations", async () => {
    const owner = { email: "First@New.example", name: "Nora", password: PASSWORD };
    const made = await fixture.ask(createOrganization, { name: "New Diner", owner });
    expect(made.owner).toMatchObject({ email: "first@new.example", role: "owner", status: "active" });
    const session = await logIn(PASSWORD, "organization.manage", owner.email);
    expect(session.organizationId).toBe(made.organization.organizationId);
    const caller = await callerOf(fixture.sql, "first@new.example");
    const { filial } = await fixture.ask(createFilial, { caller, name: "First" });
    const station = { caller, filialId: filial.filialId, name: "Counter", currency: "EUR" };
    expect((await fixture.ask(createStation, station)).station.sandbox).toBe(false);
    const { users: seen } = await fixture.ask(users.listUsers, { caller });
    expect(seen).toEqual([made.owner]);
    const { events } = await fixture.ask(listEvents, { caller, sinceId: 0 });
    expect(events.slice(0, 2)).toMatchObject([
      {
        action: "organization_created",
        actor: { kind: "registry", id: 0 },
        subject: { id: made.organization.organizationId },
      },
      { action: "user_created", actor: { kind: "registry", id: 0 } },
    ]);
  });

  test("a used e-mail address: nothing is created", async () => {
    const before = await fixture.sql`select from organizations`;
    const owner = { email, name: "Nora", password: PASSWORD };
    expect(await refusalOf(fixture.ask(createOrganization, { name: "Twice", owner }))).toEqual({
      code: "already_exists",
    });
    expect(await fixture.sql`select from organizations`).toHaveLength(before.length);
  });
});

let organizations = 0;
/** A new organization with two owners. */
async function twoOwners(): Promise<readonly [Caller, Caller]> {
  const first = await addOrganization(fixture.sql, `Changes ${(organizations += 1)}`);
  const second = `second-${organizations}@changes.example`;
  const request = { caller: first, email: second, name: "Second", role: "owner" as const, password: PASSWORD };
  await fixture.ask(users.createUser, request);
  return [first, await callerOf(fixture.sql, second)];
}
const changeUser = (caller: Caller, userId: number, more: object) =>
  fixture.ask(users.changeUser, { caller, userId, ...more });
const activeOwners = async ({ organizationId }: Caller): Promise<number> => {
  const rows = await fixture.sql`
    select from users where organization_id = ${organizationId} and role = 'owner' and status = 'active'`;
  return rows.length;
};

describe("an organization always has an owner", () => {
  test("two owners who change to another role at once: one stays an owner", async () => {
    for (let round = 0; round < 5; round += 1) {
      const [first, second] = await twoOwners();
      const tried = await Promise.allSettled(
        [first, second].map((owner) => changeUser(owner, owner.userId, { role: "cashier" })),
      );
      expect(tried.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      expect(await activeOwners(first)).toBe(1);
    }
  });

  test("an owner who changes to another role while suspending the other owner: one active owner stays", async () => {
    for (let round = 0; round < 5; round += 1) {
      const [first, second] = await twoOwners();
      await Promise.allSettled([
        changeUser(first, first.userId, { role: "cashier" }),
        fixture.ask(users.moveUser, { caller: first, userId: second.userId, move: "SUSPEND" }),
      ]);
      expect(await activeOwners(first)).toBe(1);
    }
  });

  test("the only owner who is not suspended: cannot change to another role", async () => {
    const [first, second] = await twoOwners();
    await fixture.ask(users.moveUser, { caller: first, userId: second.userId, move: "SUSPEND" });
    expect(await refusalOf(changeUser(first, first.userId, { role: "cashier" }))).toMatchObject({ code: "conflict" });
  });

  test("a former owner: may not change, suspend or reset a user, whatever the session contains", async () => {
    const [first, second] = await twoOwners();
    await changeUser(first, second.userId, { role: "cashier" });
    const { userId } = first;
    const password = "quite another password";
    const refusals = await Promise.all(
      [
        changeUser(second, userId, { name: "Hijacked" }),
        fixture.ask(users.moveUser, { caller: second, userId, move: "SUSPEND" }),
        fixture.ask(users.resetUserPassword, { caller: second, userId, password }),
      ].map(refusalOf),
    );
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: "permission_denied" });
  });
});

describe("the change of a user", () => {
  test("a user of another organization: not found; by a cashier: refused", async () => {
    const [first] = await twoOwners();
    expect(await refusalOf(changeUser(first, fixture.cashier.userId, { name: "Theirs" }))).toEqual({
      code: "not_found",
    });
    expect(await refusalOf(changeUser(fixture.cashier, fixture.cashier.userId, { role: "owner" }))).toEqual({
      code: "permission_denied",
    });
  });

  test("two users who change to one e-mail address at once: one gets it", async () => {
    const [first, second] = await twoOwners();
    const taken = { email: `taken-${organizations}@changes.example` };
    const tried = await Promise.allSettled([first, second].map(({ userId }) => changeUser(first, userId, taken)));
    expect(tried.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  test("a log-in whose password was checked before a change of role: refused after it", async () => {
    const [first, second] = await twoOwners();
    const changed = (await changeUser(first, second.userId, {})).user;
    let attempt: Promise<unknown> = Promise.resolve();
    await fixture.sql.begin(async (tx) => {
      await tx`update users set role = 'cashier' where user_id = ${second.userId}`;
      attempt = refusalOf(logIn(PASSWORD, "organization.manage", changed.email));
      await untilOneWaits();
    });
    expect(await attempt).toMatchObject({ code: "permission_denied" });
    expect(await fixture.sql`select from sessions where user_id = ${second.userId}`).toHaveLength(0);
  });
});
