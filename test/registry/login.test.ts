import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Permission } from "../../services/bus/messages/caller.ts";
import * as sessions from "../../services/bus/messages/sessions.ts";
import { REGISTRY_LIMITS } from "../../services/registry/limits.ts";
import { median } from "../support/percentile.ts";
import { OWNER_PASSWORD, type RegistryFixture, refusalOf, startRegistry } from "./registry-fixture.ts";

let fixture: RegistryFixture;
beforeAll(async () => {
  fixture = await startRegistry();
});
afterAll(() => fixture.stop());

const OWNER = "owner@sandbox.example";
let addresses = 0;
/** An address without earlier attempts. */
const newAddress = (): string => `198.51.100.${(addresses += 1)}`;
const logIn = (
  email: string,
  password: string,
  address = newAddress(),
  permission: Permission = email.startsWith("cashier") ? "payments.collect" : "organization.manage",
) => fixture.ask(sessions.logIn, { email, password, address, permission });
const countSessions = async (): Promise<number> => (await fixture.sql`select from sessions`).length;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("a log-in at the registry", () => {
  test("the right password: opens a session of twelve hours and returns its token", async () => {
    const before = Date.now();
    const reply = await logIn(OWNER, OWNER_PASSWORD);
    expect(reply.token).toMatch(/^dps_[A-Za-z0-9_-]{43}$/);
    expect(reply.user).toEqual({
      userId: fixture.owner.userId,
      email: OWNER,
      name: "Sandbox Owner",
      role: "owner",
      permissions: ["organization.manage"],
      status: "active",
    });
    expect(reply.organizationId).toBe(fixture.sandbox.organizationId);
    expect(Math.abs(reply.expiresAtMs - before - 12 * 3_600_000)).toBeLessThan(60_000);
    const [row] = await fixture.sql`
      select payload from outbox where kind = 'session_put' and payload ->> 'hash' = ${sha256(reply.token)}`;
    expect(row?.["payload"]).toMatchObject({
      entry: { ...fixture.owner, expiresAtMs: reply.expiresAtMs, sessionId: expect.any(Number) },
    });
  });

  test("an e-mail address in other letters and spaces: logs the same person in", async () => {
    expect((await logIn(" Owner@SANDBOX.example ", OWNER_PASSWORD)).user.email).toBe(OWNER);
  });

  test("a wrong password and an unknown user: the same refusal", async () => {
    expect(await refusalOf(logIn(OWNER, "wrong"))).toEqual({ code: "login_failed" });
    expect(await refusalOf(logIn("unknown@sandbox.example", OWNER_PASSWORD))).toEqual({ code: "login_failed" });
    expect(await refusalOf(logIn("", ""))).toEqual({ code: "login_failed" });
  });

  test("a person without the requested permission: refused, and no session begins", async () => {
    const before = await countSessions();
    const denied = logIn(OWNER, OWNER_PASSWORD, newAddress(), "payments.collect");
    expect(await refusalOf(denied)).toEqual({ code: "permission_denied" });
    // With a wrong password, the answer does not show the person's permissions.
    const failed = logIn(OWNER, "wrong", newAddress(), "payments.collect");
    expect(await refusalOf(failed)).toEqual({ code: "login_failed" });
    expect(await countSessions()).toBe(before);
  });

  test("an unknown user: refused after the same time as a known one", async () => {
    const timesMs = { known: [] as number[], unknown: [] as number[] };
    for (let index = 0; index < 15; index += 1) {
      for (const who of ["known", "unknown"] as const) {
        const startedAtMs = performance.now();
        // Each try uses another account, so that the throttle of one account does not end the measurement.
        const email =
          who === "known" ? (index % 2 === 0 ? OWNER : "cashier@sandbox.example") : `${index}@nowhere.example`;
        await refusalOf(logIn(email, "wrong"));
        timesMs[who].push(performance.now() - startedAtMs);
      }
    }
    // Without the dummy hash, the registry would refuse an unknown user in a tenth of the time.
    expect(median(timesMs.unknown) / median(timesMs.known)).toBeGreaterThan(0.5);
    expect(median(timesMs.unknown) / median(timesMs.known)).toBeLessThan(2);
  });

  test("one session above the limit: the user's oldest session ends", async () => {
    const email = "cashier@sandbox.example";
    const tokens: string[] = [];
    for (let index = 0; index < REGISTRY_LIMITS.sessionsPerUser + 2; index += 1) {
      tokens.push((await logIn(email, "cashier of the sandbox")).token);
    }
    const open = await fixture.sql`
      select 1 from sessions where user_id = ${fixture.cashier.userId} and ended_at is null`;
    expect(open).toHaveLength(REGISTRY_LIMITS.sessionsPerUser);
    const deleted = await fixture.sql<{ hash: string }[]>`
      select payload ->> 'hash' as hash from outbox
      where kind = 'session_delete' and key = ${`session.${fixture.cashier.userId}`} order by outbox_id`;
    expect(deleted.map((row) => row.hash)).toEqual(tokens.slice(0, 2).map(sha256));
  });
});

describe("a log-out at the registry", () => {
  test("by the person of the session: the session ends, once; by another person: nothing changes", async () => {
    const { token } = await logIn(OWNER, OWNER_PASSWORD);
    const [session] = await fixture.sql<[{ session_id: number }]>`
      select session_id from sessions where encode(token_hash, 'hex') = ${sha256(token)}`;
    const isOpen = async () =>
      (await fixture.sql`select 1 from sessions where session_id = ${session.session_id} and ended_at is null`)
        .length === 1;
    await fixture.ask(sessions.logOut, { caller: fixture.cashier, sessionId: session.session_id });
    expect(await isOpen()).toBe(true);
    await fixture.ask(sessions.logOut, { caller: fixture.owner, sessionId: session.session_id });
    await fixture.ask(sessions.logOut, { caller: fixture.owner, sessionId: session.session_id });
    expect(await isOpen()).toBe(false);
    const deletions = await fixture.sql`
      select 1 from outbox where kind = 'session_delete' and payload ->> 'hash' = ${sha256(token)}`;
    expect(deletions).toHaveLength(1);
  });
});
